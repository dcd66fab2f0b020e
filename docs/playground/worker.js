/* The worker with the small engine: it opens, encodes and counts. */
import "./ggtok/core/ggtok_bg.js"; // asked for with the others, and not after them
import * as ggtok from "./ggtok/core/ggtok.js";
import { serve } from "./calls.js";

/** The compiled engine, which the page has loaded meanwhile. */
const code = new Promise((resolve) => addEventListener("message", ({ data }) => "code" in data && resolve(data.code)));
serve(ggtok, code);
