/* What sphinx-copybutton leaves out: the button that was pressed keeps the focus, and a screen reader hears what
   has happened. */
document.addEventListener("DOMContentLoaded", () => {
    const told = document.createElement("div");
    told.className = "visually-hidden";
    told.setAttribute("role", "status");
    document.body.append(told);
    document.addEventListener("click", (event) => {
        const button = event.target.closest("button.copybtn");
        if (!button) return;
        told.textContent = "";
        // After the click the button's label says whether the text is on the clipboard.
        setTimeout(() => {
            button.focus();
            told.textContent = button.dataset.tooltip;
        });
    });
});
