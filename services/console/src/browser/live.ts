// Marks regions whose updates fail: their values are old, and look so.

/** Updates that may fail before a region counts as stale. */
const missedUpdates = 2;

function isRegion(target: EventTarget | null): target is HTMLElement {
  return target instanceof HTMLElement && target.dataset.every !== undefined;
}

const updatedAt = new WeakMap<HTMLElement, number>();

function markStale(): void {
  let isAnyStale = false;
  for (const region of document.querySelectorAll<HTMLElement>('[data-every]')) {
    const at = updatedAt.get(region) ?? performance.now();
    updatedAt.set(region, at);
    const isStale = performance.now() - at > (missedUpdates + 1) * Number(region.dataset.every) * 1000;
    region.toggleAttribute('data-stale', isStale);
    isAnyStale ||= isStale;
  }
  for (const mark of document.querySelectorAll('.stale-mark')) mark.classList.toggle('shown', isAnyStale);
}

document.addEventListener('htmx:after:swap', ({ target }) => {
  if (isRegion(target)) updatedAt.set(target, performance.now());
  markStale();
});
setInterval(markStale, 1000);
