const answers = [...document.querySelectorAll("[data-key]")];
const points = answer => answer.querySelector("[inputmode]");
const comment = answer => answer.querySelector("textarea");
const boxes = answer => [...answer.querySelectorAll("[type=checkbox]")];
let saved = true;

// The counter above each question shows how many answers have points.
function count() {
    for (const section of document.querySelectorAll("section")) {
        const own = answers.filter(answer => section.contains(answer) && points(answer).value.trim());
        section.querySelector("output").value = own.length;
    }
}

// A ticked item adds its points and its sentence; what a teacher has typed in the comment stays.
function apply(answer, box) {
    const ticked = boxes(answer).filter(one => one.checked);
    points(answer).value = ticked.length
        ? ticked.reduce((sum, one) => sum + Number(one.dataset.points), 0) : "";
    const says = box.dataset.says, text = comment(answer).value;
    if (says) {
        const rest = text.split(says).map(part => part.trim()).filter(Boolean).join(" ");
        comment(answer).value = box.checked ? `${text.trim()} ${says}`.trim() : rest;
    }
}

document.addEventListener("input", event => {
    const answer = event.target.closest("[data-key]");
    if (event.target.type === "checkbox") apply(answer, event.target);
    saved = false;
    count();
});

document.addEventListener("keydown", event => {
    const answer = event.target.closest?.("[data-key]");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("textarea, [inputmode]")) return;
    const box = answer && boxes(answer)[Number(event.key) - 1];
    if (box) box.click();
    if (event.key.toLowerCase() !== "n") return;
    const later = answers.slice(answers.indexOf(answer) + 1);
    later.find(one => !points(one).value.trim())?.focus();
    event.preventDefault();
});

addEventListener("beforeunload", event => saved || event.preventDefault());
const cell = text => '"' + text.replaceAll('"', '""') + '"';
document.querySelector("button").addEventListener("click", () => {
    const lines = answers.map(one => [one.dataset.key, points(one).value, comment(one).value]);
    const table = [["key", "points", "comment"], ...lines].map(line => line.map(cell).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([table.join("\n")], {type: "text/csv"}));
    link.download = "marks.csv";
    link.click();
    saved = true;
});
count();
