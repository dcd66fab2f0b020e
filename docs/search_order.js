// The order of search results: guides before the rest, and what few readers look for last.
const WEIGHTS = [
    [/^(quickstart|install|open|encode|count|decode|chat|vocabulary|check|train|convert|corpus|run)$/, 1.5],
    [/^(adapters|corpus-engines|trace|architecture|releases|coming-from\/)/, 0.8],
    [/^(changes|contributing|maintaining|deviations|performance)$/, 0.4],
];

/** The words of a text, without the ending of a plural. */
function words(text) {
    return (text.toLowerCase().match(/\w+/g) ?? []).map((word) => word.replace(/s$/, ""));
}

var Scorer = {
    score([page, title, , , score, , kind]) {
        const [, weight] = WEIGHTS.find(([pages]) => pages.test(page)) ?? [, 1];
        const sought = words(new URLSearchParams(location.search).get("q") ?? "");
        const shared = kind === "object" ? [] : words(title).filter((word) => sought.includes(word));
        return (score + 10 * shared.length) * weight;
    },
    objNameMatch: 11,
    objPartialMatch: 6,
    objPrio: { 0: 15, 1: 5, 2: -5 },
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
};
