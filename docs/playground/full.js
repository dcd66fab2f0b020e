/* The worker with the whole engine, for traces and chats. It starts when one is first asked for. */
import * as ggtok from "./ggtok/ggtok.js";
import { serve } from "./calls.js";

serve(ggtok);
