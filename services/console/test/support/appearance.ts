import type { ChromiumPage } from '@tollgate/testkit/chromium';
import axe from 'axe-core';
import type { Test } from 'tap';

const narrow = 375;
const wide = 1280;

async function setScreen(
  page: ChromiumPage,
  { width, scheme }: { readonly width: number; readonly scheme: 'light' | 'dark' },
): Promise<void> {
  const metrics = { width, height: 800, deviceScaleFactor: 1, mobile: false };
  await page.send('Emulation.setDeviceMetricsOverride', metrics);
  await page.send('Emulation.setEmulatedMedia', {
    features: [{ name: 'prefers-color-scheme', value: scheme }],
  });
}

/** Checks a page that is open: two sizes and color schemes, and accessibility. */
export async function checkAppearance(t: Test, page: ChromiumPage): Promise<void> {
  await setScreen(page, { width: narrow, scheme: 'light' });
  t.same(await findViolations(page, 'all'), [], 'narrow, light');
  t.same(await findWide(page), [], 'narrow');
  await setScreen(page, { width: wide, scheme: 'dark' });
  t.same(await findViolations(page, 'visual'), [], 'wide, dark');
  t.same(await findWide(page), [], 'wide');
}

/** Violations of WCAG 2.2 AA and best practices, or those of sizes and colors only. */
export function findViolations(page: ChromiumPage, extent: 'all' | 'visual'): Promise<unknown> {
  const options =
    extent === 'all'
      ? { rules: { 'target-size': { enabled: true } } }
      : { runOnly: ['color-contrast', 'target-size'] };
  // Injected by the debugger, to which the CSP does not apply.
  return page.evaluate(`${extent === 'all' ? axe.source : ''};
    axe.run(${JSON.stringify(options)}).then(({ violations }) =>
      violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 300))]))`);
}

/** Elements wider than the screen, except in areas that scroll. */
function findWide(page: ChromiumPage): Promise<unknown> {
  return page.evaluate(`[...document.querySelectorAll('body *')].filter((element) =>
    !element.closest('.table, .pages, .tabs, dialog, .u-legend, .skip') && element.getBoundingClientRect().right > innerWidth + 1)
    .map(({ outerHTML }) => outerHTML.slice(0, 200))`);
}
