import { type Chromium, type ChromiumPage, findChromium, startChromium } from '@tollgate/testkit/chromium';
import axe from 'axe-core';
import type { Test } from 'tap';

const chromiumPath = findChromium();
if (chromiumPath instanceof Error && process.env.CI === 'true') throw chromiumPath;

/** Option of tests with Chromium: the reason to leave them out, where it is not installed. */
export const skip = chromiumPath instanceof Error ? `left out: ${chromiumPath.message}` : false;

/** Starts Chromium, which reaches `localhost` with the ports at other addresses. */
export async function startBrowser(
  t: Pick<Test, 'teardown'>,
  hosts: Readonly<Record<string, string>>,
): Promise<Chromium> {
  const chromium = await startChromium(String(chromiumPath), hosts);
  t.teardown(() => chromium.stop());
  return chromium;
}

/** Sets what media queries see. */
export async function setScreen(
  page: ChromiumPage,
  { width, scheme }: { readonly width: number; readonly scheme: 'light' | 'dark' },
): Promise<void> {
  const metrics = { width, height: 800, deviceScaleFactor: 1, mobile: false };
  await page.send('Emulation.setDeviceMetricsOverride', metrics);
  const features = [{ name: 'prefers-color-scheme', value: scheme }];
  await page.send('Emulation.setEmulatedMedia', { features });
}

/** Rules whose result depends on sizes and colors. */
const visualRules = ['color-contrast', 'target-size'];

/** The violations of WCAG 2.2 AA and of best practices, or those of sizes and colors only. */
export function findViolations(page: ChromiumPage, extent: 'all' | 'visual'): Promise<unknown> {
  const options =
    extent === 'all' ? { rules: { 'target-size': { enabled: true } } } : { runOnly: visualRules };
  // Injected by the debugger, to which the CSP does not apply.
  return page.evaluate(`${extent === 'all' ? axe.source : ''};
    axe.run(${JSON.stringify(options)}).then(({ violations }) =>
      violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]))`);
}

/** Elements whose text is cut, or which are wider than the screen. */
const findOverflow = `[...document.querySelectorAll('body, body *')].filter((element) => {
  const { right, left, width } = element.getBoundingClientRect();
  return width > 0 && (left < 0 || right > innerWidth || element.scrollWidth > Math.ceil(width));
}).map(({ outerHTML }) => outerHTML.slice(0, 200))`;

/**
 * Shows versions of the page one after the other, and returns what does not fit. Only the body is
 * replaced, which is much cheaper than to load each.
 */
export function findOverflows(page: ChromiumPage, versions: readonly string[]): Promise<unknown> {
  return page.evaluate(`${JSON.stringify(versions)}.flatMap((text) => {
    document.documentElement.lang = / lang="([^"]+)"/.exec(text)[1];
    const template = document.createElement('template');
    template.innerHTML = text;
    document.body.replaceChildren(template.content.querySelector('main'));
    return ${findOverflow};
  })`);
}

/**
 * Moves the focus by the keyboard to the element that a selector finds. Throws if it cannot be
 * reached, or if the focus cannot be seen on the way.
 */
export async function tabTo(page: ChromiumPage, selector: string): Promise<void> {
  const read = `(() => {
    const { activeElement: element } = document;
    const { outlineWidth, outlineStyle } = getComputedStyle(element);
    const { top, bottom } = element.getBoundingClientRect();
    const isVisible = parseFloat(outlineWidth) >= 2 && outlineStyle !== 'none' && top >= 0 && bottom <= innerHeight;
    return { isFound: element.matches(${JSON.stringify(selector)}), isVisible, html: element.outerHTML.slice(0, 200) };
  })()`;
  for (let presses = 0; presses < 20; presses++) {
    await page.press('Tab');
    // Parsed boundary: the expression above.
    const focus = (await page.evaluate(read)) as { isFound: boolean; isVisible: boolean; html: string };
    if (!focus.isVisible) throw new Error(`the focus cannot be seen: ${focus.html}`);
    if (focus.isFound) return;
  }
  throw new Error(`${selector} cannot be reached by the keyboard`);
}
