for (const root of document.querySelectorAll(".cgmm-explorer:not([data-ready])")) {
  const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const image = root.querySelector("img");
  const pictures = data.pictures.map((picture) => picture ?? image.src);
  const controls = [...root.querySelectorAll("[data-control]")];
  const position = (control) =>
    Number(control.querySelector("input[type='range'], input:checked").value);

  const show = () => {
    // The last control runs fastest.
    const at = controls.reduce((at, c, i) => at * data.names[i].length + position(c), 0);
    image.src = pictures[data.frame[at]];
    image.alt = root.querySelector("[role='status']").textContent = data.text[at];
    controls.forEach((control, i) => {
      const slider = control.querySelector("input[type='range']");
      if (!slider) return;
      const name = data.names[i][position(control)];
      slider.setAttribute("aria-valuetext", name);
      control.querySelector("output").textContent = name;
    });
  };

  controls.forEach((control, i) => {
    control.querySelector("button")?.addEventListener("click", () => {
      const slider = control.querySelector("input");
      slider.value = (position(control) + 1) % data.names[i].length;
      show();
    });
  });
  root.querySelector("form").addEventListener("input", show);
  root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  root.querySelector("fieldset").disabled = false;
  root.dataset.ready = "";
}
