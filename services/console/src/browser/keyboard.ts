// Keys that work on every page: `/` searches, `?` shows the keys.

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]');
}

document.addEventListener('keydown', (event) => {
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '/') {
    const search = document.querySelector<HTMLInputElement>('[data-search]');
    if (search === null) return;
    event.preventDefault();
    search.focus();
    search.select();
  }
  if (event.key === '?') {
    const help = document.querySelector<HTMLDialogElement>('#help');
    if (help?.open === false) help.showModal();
  }
});
