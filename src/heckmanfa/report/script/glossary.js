// Terms show what they mean on hover, focus and touch; without this script they link to the list.
for (const term of all("a.term"))
  term.dataset.tip = document.getElementById(term.hash.slice(1)).textContent;
on("click", (event) => {
  if (event.pointerType === "touch" && event.target.closest("a.term")) event.preventDefault();
});
