/* The heads of models that were opened, kept in this browser, so that they open again without a network. */

const NAME = "ggtok-models";
const MOST = 8;

const keyOf = (choice) => new URL(`kept?${encodeURIComponent(choice)}`, import.meta.url).href;
const cache = () => caches.open(NAME);

/** The choices that are kept, the newest first. */
export async function kept() {
  try {
    const keys = await (await cache()).keys();
    return keys.map(({ url }) => decodeURIComponent(new URL(url).search.slice(1))).reverse();
  } catch {
    return [];
  }
}

/** What `keep` was given for a choice, or null. */
export async function find(choice) {
  try {
    const found = await (await cache()).match(keyOf(choice));
    return found ? { file: await found.blob(), size: Number(found.headers.get("x-size")) || null } : null;
  } catch {
    return null;
  }
}

/** Keeps a head. False if there is no room, or the browser keeps nothing. */
export async function keep(choice, { file, size }) {
  try {
    const own = await cache();
    await own.delete(keyOf(choice));
    await own.put(keyOf(choice), new Response(file, { headers: { "x-size": `${size ?? 0}` } }));
    const keys = await own.keys();
    await Promise.all(keys.slice(0, -MOST).map((key) => own.delete(key)));
    return true;
  } catch {
    return false;
  }
}

/** Forgets all. */
export const forget = () => caches.delete(NAME).catch(() => false);
