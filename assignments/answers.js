const cell = text => '"' + text.replaceAll('"', '""') + '"';
let saved = true;
addEventListener("input", () => saved = false);
addEventListener("beforeunload", event => saved || event.preventDefault());
document.querySelector("button").addEventListener("click", () => {
    const lines = [...document.querySelectorAll("[data-key]")].map(answer => [answer.dataset.key,
        answer.querySelector("input").value, answer.querySelector("textarea").value]);
    const table = [["key", "points", "comment"], ...lines].map(line => line.map(cell).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([table.join("\n")], {type: "text/csv"}));
    link.download = "marks.csv";
    link.click();
    saved = true;
});
