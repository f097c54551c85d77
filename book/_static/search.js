// The search page. ENTRIES, from search_entries.js, has a line for each page, section, term, theorem,
// equation, figure, exercise, name of the package and reference: kind, title, url, page, text, number.

const KINDS = {
  chapter: ["", 70], page: ["Page", 45], term: ["Term", 50], theorem: ["", 40], work: ["Reference", 38],
  section: ["Section", 35], name: ["Name of the package", 33], figure: ["Figure", 25],
  equation: ["Equation", 20], exercise: ["", 20],
};
const FAMILIES = [
  [/^(fig|figure)$/, entry => entry.kind === "figure"],
  [/^(eq|eqn|equation)$/, entry => entry.kind === "equation"],
  [/^(ch|chap|chapter)$/, entry => entry.kind === "page"],
  [/^(thm|theorem|lemma|prop|proposition|cor|corollary|def|definition|assumption|axiom|example|remark|algorithm)$/,
    (entry, word) => entry.kind === "theorem" && entry.title.toLowerCase().startsWith(word.slice(0, 2))],
  [/^(ex|exercise)$/, entry => entry.kind === "exercise"],
];
const SHOWN = 30;

// What readers call a thing that the book calls otherwise: these words count as if they stood in the
// title. A page, or a place on it, is named by its address without ".html".
const CALLED = {
  "book/using": "install installation installing setup pip colab binder jupyter jupyterlab notebook run download requirements",
  "book/using#keys": "keyboard shortcut hotkey",
  "book/howto#choose-the-number-of-components": "elbow silhouette bic aic how many clusters number",
  "book/howto#save-and-load-a-fit": "save model pickle joblib export persist store",
  "book/howto#save-time-and-memory": "slow fast speed faster memory gpu",
  "book/howto#predict-new-points-with-relations-among-them": "prediction classify new data",
  "book/howto#deal-with-missing-values": "nan impute imputation missing data na incomplete",
  "book/howto#cluster-categorical-data": "discrete latent class bernoulli multinomial",
  "book/howto#mend-relations-that-contradict-each-other": "constraint inconsistent conflict contradiction infeasible contradictory",
  "book/large_data": "large big data out of core memmap dask cluster minibatch streaming parallel huge million row",
  "book/01_mixtures": "gmm mixture model gaussian likelihood density",
  "book/02_em": "expectation maximization elbo variational bound jensen e-step m-step",
  "book/03_practice": "initialization init seed restart start local optimum optima maximum maxima k-means++ kmeans++ singularity singular covariance overfitting convergence collapse different result every time run again unstable random empty regularise reg_covar",
  "book/04_some_labels": "semi-supervised partial label labelled unlabelled classification seed few labels percent",
  "book/05_where_relations_come_from": "side information pairwise constraint supervision come from origin source practice application",
  "book/06_chunklet_em": "must-link chunklet group equivalence",
  "book/07_cannot_links": "cannot-link markov random field junction tree variable elimination treewidth np-hard complexity",
  "book/08_the_normaliser": "log z partition function normalizing constant omega estimate omega",
  "book/09_soft_preferences": "soft constraint noisy uncertain weak penalty ppc penalized probabilistic wrong mistaken strength strong weight confidence",
  "book/10_gibbs_and_mean_field": "mcmc approximate inference loopy message passing sampler potts ising variational belief propagation sampling",
  "book/11_kmeans_limit": "kmeans k-means lloyd cop-kmeans pckmeans hard clustering constrained special case hard instead of soft",
  "book/12_rca": "metric learning distance mahalanobis whitening lda fisher dimension reduction pca",
  "book/13_the_papers_rerun": "replication reproducibility reproduce results paired difference replicate did result hold significance",
  "book/14_choosing_a_method": "which algorithm compare comparison decision guide flowchart best method choose",
  "book/15_the_next_question": "active learning query selection ask oracle",
  "book/16_many_witnesses": "crowdsourcing annotator dawid skene expert disagreement disagree crowd rater label",
  "book/notation": "symbols letters meaning symbol letter stand mean",
  "book/instructors": "teaching course syllabus grading assignment lecture exam teacher",
  "book/benchmarks": "timing performance runtime scaling speed scikit-learn sklearn comparison faster slower",
  "book/api/plot": "draw plot figure ellipse visualise visualize",
  "book/errata": "mistakes misprint correction typo error wrong in original paper misprint",
  "book/bibliography": "references literature papers citation",
  "book/api/mixture/ConstrainedGaussianMixture": "gaussianmixture estimator fit sklearn scikit-learn",
};

// "Cannot-links" is found by cannot-links, cannot-link, cannot and links; a plural by its singular,
// and either spelling of English by the other.
const spelling = word => word.replace(/is(?=(e|ed|er|ing|ation)s?$)/, "iz").replace(/yse/, "yze")
  .replace(/(col|neighb|behavi|fav|lab|harb)our/, "$1or").replace(/centre/, "center").replace(/lling|lled/, one => one.slice(1));
const singular = word => spelling(word.length > 4 && word.endsWith("ies") ? `${word.slice(0, -3)}y`
  : word.length > 3 && /[^s]s$/.test(word) ? word.slice(0, -1) : word);
// Forms of one word: regularise, regularised and regularisation; slow and slowly; sample, sampled and sampling.
const stem = word => word.length < 5 ? word : (word.length < 7 ? word : word.replace(/(iz)?(ation|ion)$/, "$1"))
  .replace(/(?<=.{3})(ing|edly|ed|er|ly)$/, "").replace(/(?<=.{3})e$/, "").replace(/([^aeiouls])\1$/, "$1");
const fold = text => text.normalize("NFD").replace(/[\u0300-\u036f]/g, "").toLowerCase().replace("means++", "meanspp");
const JOINT = /[-.'’]/, WORD = /[\p{L}\p{N}_]+(?:[-.'’][\p{L}\p{N}_]+)*/gu;
// Words that say nothing of what is asked, unless there is no other; so do single letters.
const STOP = new Set(("a an and any are as at be been but by can could did do does for from get give had has have how i if in "
  + "into is it its like make me my need of on or our should so than that the their them there these they this to "
  + "use using vs versus was we were what when where which who why will with would you your deal handle take went want work there").split(" "));
// Words that readers and the book use for one thing; another word of a line counts for less than the word itself.
const ALIKE = ["annotator expert worker rater judge person people", "relation constraint link", "component cluster class group",
  "point sample observation item example row", "wrong error mistake false incorrect", "weight proportion share", "image picture photo",
  "time speed runtime duration", "choose select pick", "compute calculate", "metric distance similarity", "column feature variable dimension",
  "start initialisation seed", "maximum optimum peak", "same together equal", "different apart distinct", "probability chance odds",
  "normaliser denominator constant", "result finding outcome", "draw repetition realisation replicate", "question query", "fit train",
  "predict classify"].map(line => line.split(" ").map(word => stem(singular(word))));
const telling = words => words.filter(word => !STOP.has(word) && (word.length > 1 || /\d/.test(word)));
function askedWords(query) {
  const all = (fold(query).match(WORD) ?? []).map(singular);
  return (telling(all).length ? telling(all) : all).map(stem);
}
const wordsOf = text => (fold(text).match(WORD) ?? [])
  .flatMap(word => JOINT.test(word) ? [word, ...word.split(JOINT)] : [word]).map(word => stem(singular(word)));
const counted = words => words.reduce((n, word) => n.set(word, (n.get(word) ?? 0) + 1), new Map());

const mean = numbers => numbers.reduce((sum, n) => sum + n, 0) / numbers.length;
// What a word counts for: in a title (of the package: less), as a reader's word, as another word for the same, in the text;
// the best section of a page; the kind of an entry (of the package: less); a title that is the question; the power of the share
// of words that are found.
const W = {title: 1.4, nameTitle: 0.5, called: 3.8, alike: 0.5, text: 0.55, best: 1.4, worth: 0.55, api: 0.35, named: 2, cover: 0.65};
let index;
function indexed() {
  if (index) return index;
  index = ENTRIES.map(entry => {
    const title = wordsOf(entry.title), text = wordsOf(`${entry.text} ${entry.kind === "page" ? "" : entry.page}`);
    const called = wordsOf(CALLED[entry.url.replace(".html", "")] ?? "");
    return {entry, title: counted(title), called: new Set(called), length: title.length, text: counted(text), size: text.length};
  });
  const pages = Object.groupBy(index, one => one.entry.url.split("#")[0]);
  index.usual = mean(index.map(one => one.size));
  for (const one of index.filter(({entry}) => entry.kind === "page")) {
    // A page has the words of all its sections, which may be spread over them.
    one.parts = pages[one.entry.url].filter(part => part !== one);
    const whole = new Map();
    for (const [word, n] of pages[one.entry.url].flatMap(({title, text}) => [...title, ...text])) whole.set(word, (whole.get(word) ?? 0) + n);
    Object.assign(one, {text: whole, size: [...whole.values()].reduce((sum, n) => sum + n)});
  }
  index.usualPage = mean(index.filter(one => one.parts).map(one => one.size));
  return index;
}

// How much a text is about a word, from 0 to 1: more with each time that it is there, less if the text is long (BM25).
const about = (n, size, usual) => n / (n + 1.2 * (0.5 + 0.5 * size / usual));

// "Theorem 7.2", "Fig. 7.1", "(7.1)" and "chapter 7" name one thing.
function named(query) {
  const found = fold(query).trim().match(/^(?:([a-z]+)\.?\s*)?\(?(\d+(?:\.\d+)*)\)?$/);
  if (!found) return [];
  const family = FAMILIES.find(([pattern]) => pattern.test(found[1] ?? ""));
  if (found[1] && !family) return [];
  const all = ENTRIES.filter(one => one.number === found[2] && (!family || family[1](one, found[1])));
  // In brackets stands the number of an equation.
  const isFirst = one => query.includes("(") && one.kind === "equation";
  return all.sort((a, b) => isFirst(b) - isFirst(a));
}

function search(query) {
  // The parts of "cannot-link" are no words of their own here.
  const asked = askedWords(query);
  const all = indexed(), first = named(query);
  if (!asked.length) return first;
  // A word counts as the beginning of others only where it is no word itself: "Chang", not "change".
  const has = asked.map(word => {
    if (all.some(one => one.title.has(word) || one.text.has(word) || one.called.has(word))) return (words => words.get(word) ?? 0);
    return words => [...words].reduce((n, [other, k]) => other.startsWith(word) ? n + k : n, 0);
  });
  const alike = asked.map(word => ALIKE.filter(line => line.includes(word)).flat().filter(other => other !== word));
  // What few entries have tells more than what many have.
  const holders = count => all.filter(({title, text}) => count(title) || count(text)).length;
  const weights = has.map(count => Math.log((1 + all.length) / (1 + holders(count))));
  const sum = weights.reduce((one, other) => one + other, 0);
  // Parts of a dotted name are no heading for a question in plain words.
  const isProse = asked.length > 1 && !/[._(]|[a-z][A-Z]/.test(query);
  const functions = [...fold(query).matchAll(/([\w.]+)\(/g)].map(([, name]) => name);
  const ratings = new Map();
  const rate = one => ratings.get(one) ?? ratings.set(one, rateAnew(one)).get(one);
  function rateAnew({entry, title, called, length, text, size, parts}) {
    const isName = isProse && (entry.kind === "name" || entry.url.includes("/api/"));
    const usual = parts ? all.usualPage : all.usual;
    // The word itself, or else the best of the words for the same.
    const best = (own, n, worthOf) => own || W.alike * Math.max(0, ...alike[n].map(worthOf));
    let score = 0, inTitle = 0, found = 0, covered = 0;
    has.forEach((count, n) => {
      const own = {title: Boolean(count(title)), called: called.has(asked[n]), text: count(text)};
      const heading = best(Number(own.title), n, word => title.has(word)), known = best(Number(own.called), n, word => called.has(word));
      const below = best(about(own.text, size, usual), n, word => about(text.get(word) ?? 0, size, usual));
      if (own.title) inTitle++;
      if (!heading && !known && !below) return;
      found++;
      covered += weights[n] * (own.title || own.called || own.text ? 1 : W.alike);
      score += weights[n] * ((isName ? W.nameTitle : W.title) * heading + W.called * known + W.text * below);
    });
    // A part with all the words in its title is a hit of its own.
    const share = (covered / sum) ** W.cover, ofText = inTitle === asked.length ? 0 : score / sum * share;
    if (parts) score += sum * W.best * Math.max(0, ...parts.map(part => rate(part).ofText));
    const [, worth] = KINDS[entry.kind === "page" && entry.number ? "chapter" : entry.kind];
    // What is named as the question is, and nothing else, is what was meant.
    const named = inTitle === asked.length && !isName ? inTitle / Math.max(length, asked.length) : 0;
    score = (score / sum + W.worth * worth / 70 * (isName ? W.api : 1) + W.named * named) * share;
    // The estimator is meant where several classes have a method of that name.
    const isCalled = entry.kind === "name" && functions.some(name => entry.title.toLowerCase().endsWith(name));
    if (isCalled) score += /estimator/.test(CALLED[entry.url.split(".html")[0]]) ? 6 : 3;
    return {entry, score, found, ofText};
  }
  const hits = all.map(rate).filter(({found}) => found);
  // What has few of the words is no hit.
  const most = Math.max(...hits.map(({found}) => found));
  const best = hits.filter(({found}) => found >= most - 1 && found > asked.length / 3).sort((a, b) => b.score - a.score);
  return [...new Set([...first, ...best.map(({entry}) => entry)])];
}

// The words around the first one that was asked for.
function context(entry, asked) {
  const plain = fold(entry.text), text = plain.length === entry.text.length ? entry.text : plain;
  const places = asked.map(word => plain.indexOf(word)).filter(place => place >= 0);
  let start = places.length ? Math.max(0, Math.min(...places) - 70) : 0;
  if (start) start = text.indexOf(" ", start) + 1;
  const end = text.length > start + 190 ? text.lastIndexOf(" ", start + 190) : text.length;
  return (start ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
}

function element(name, text, className) {
  const one = document.createElement(name);
  if (text) one.textContent = text;
  if (className) one.className = className;
  return one;
}

// A line of text in which the words that were asked for stand out.
function marked(text, asked) {
  const line = element("p", "", "cgmm-hit-text"), plain = fold(text);
  if (plain.length !== text.length) return Object.assign(line, {textContent: text});
  const escaped = asked.map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  let at = 0;
  for (const found of plain.matchAll(new RegExp(`(?<![\\p{L}\\p{N}])(?:${escaped.join("|")})`, "gu"))) {
    line.append(text.slice(at, found.index), element("mark", text.slice(found.index, at = found.index + found[0].length)));
  }
  line.append(text.slice(at));
  return line;
}

function item(entry, asked) {
  const one = element("li"), link = element("a", entry.title);
  link.href = document.documentElement.dataset.content_root + entry.url;
  const [kind] = KINDS[entry.kind];
  const place = entry.kind === "page" || entry.page === entry.title ? "" : entry.page;
  const number = entry.kind === "page" && entry.number ? `Chapter ${entry.number}` : kind;
  one.append(link, element("span", [number, place].filter(Boolean).join(" · "), "cgmm-hit-kind"));
  if (entry.text) one.append(marked(context(entry, asked), asked));
  return one;
}

function show(query) {
  const box = document.getElementById("search-results");
  const asked = askedWords(query);
  const hits = search(query), list = element("ol");
  const many = hits.length === 1 ? "One place" : `${hits.length || "No"} places`;
  const known = asked.every(word => indexed().some(one => one.title.has(word) || one.text.has(word)));
  const how = known || !hits.length ? "for" : "with words that begin with";
  const said = element("p", `${many} ${how} “${query}”.`);
  said.setAttribute("role", "status");
  if (!hits.length) said.append(" Fewer words find more; the glossary and the index list all terms.");
  list.append(...hits.slice(0, SHOWN).map(entry => item(entry, asked)));
  box.replaceChildren(said, list);
  if (hits.length <= SHOWN) return;
  const more = element("button", `Show the other ${hits.length - SHOWN}`, "cgmm-button");
  more.addEventListener("click", () => {
    const rest = hits.slice(SHOWN).map(entry => item(entry, asked));
    more.remove();
    list.append(...rest);
    rest[0].querySelector("a").focus();
  });
  box.append(more);
}

// While somebody types, the results follow once the fingers rest, and the address keeps the query.
let waiting;
function showSoon(query) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    history.replaceState(null, "", `?q=${encodeURIComponent(query)}`);
    if (query.trim()) show(query); else document.getElementById("search-results").replaceChildren();
  }, 150);
}

document.addEventListener("DOMContentLoaded", () => {
  const query = new URLSearchParams(location.search).get("q") ?? "";
  const field = document.querySelector(".bd-search-container input[type=search]");
  if (field) {
    field.value = query;
    field.addEventListener("input", () => showSoon(field.value));
  }
  if (query.trim()) show(query);
});
