/* The worker with the small engine: it opens, encodes and counts. */
import * as ggtok from "./ggtok/core/ggtok.js";
import { serve } from "./calls.js";

serve(ggtok);
