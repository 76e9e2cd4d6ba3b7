// Buttons that copy a text. They are hidden without this script.

/** How long a button says that it has copied. */
const shownMs = 1500;

function showButtons(): void {
  if (!('clipboard' in navigator)) return;
  for (const button of document.querySelectorAll('.copy')) button.classList.add('ready');
}

document.addEventListener('click', async ({ target }) => {
  if (!(target instanceof HTMLElement)) return;
  const { copy } = target.dataset;
  if (copy === undefined) return;
  await navigator.clipboard.writeText(copy);
  target.textContent = 'Copied';
  setTimeout(() => {
    target.textContent = 'Copy';
  }, shownMs);
});
document.addEventListener('htmx:after:swap', showButtons);
showButtons();
