/* The heads of models that were opened, kept in this browser, so that they open again without a network. */

const NAME = "ggtok-models";
const MOST = 8;

const keyOf = (choice) => new URL(`kept?${encodeURIComponent(choice)}`, import.meta.url).href;

/** What work on the cache gives, or `otherwise` if there is no room, or the browser keeps nothing. */
async function attempt(work, otherwise) {
  try {
    return await work(await caches.open(NAME));
  } catch {
    return otherwise;
  }
}

/** The choices that are kept, the newest first. */
export const kept = () =>
  attempt(async (own) => {
    const keys = await own.keys();
    return keys.map(({ url }) => decodeURIComponent(new URL(url).search.slice(1))).reverse();
  }, []);

/** What `keep` was given for a choice, or null. */
export const find = (choice) =>
  attempt(async (own) => {
    const found = await own.match(keyOf(choice));
    return found ? { file: await found.blob(), size: Number(found.headers.get("x-size")) || null } : null;
  }, null);

/** Keeps a head. False if it cannot be kept. */
export const keep = (choice, { file, size }) =>
  attempt(async (own) => {
    await own.delete(keyOf(choice));
    await own.put(keyOf(choice), new Response(file, { headers: { "x-size": `${size ?? 0}` } }));
    const keys = await own.keys();
    await Promise.all(keys.slice(0, -MOST).map((key) => own.delete(key)));
    return true;
  }, false);

/** Forgets all. */
export const forget = () => caches.delete(NAME).catch(() => false);
