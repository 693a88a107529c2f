// A button with data-copy copies the text of the element with that id, and says that it did.
if (navigator.clipboard) for (const button of all("button[data-copy]")) {
  const words = button.textContent;
  button.hidden = false;
  button.onclick = async () => {
    const from = document.getElementById(button.dataset.copy), text = from.textContent;
    // Code keeps its lines.
    const copied = from.matches("code") ? text : text.replace(/\s+/g, " ").trim();
    await navigator.clipboard.writeText(copied);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = words; }, 3000);
  };
}
