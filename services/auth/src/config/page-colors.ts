import { colors } from '@tollgate/kit/design-tokens';
import type { SettingProblem } from '@tollgate/kit/settings';
import { contrast } from '../templates/colors.ts';

/** Colors of the pages, apart from those of the operator. */
export const pageColors = { light: selectUsed(colors.light), dark: selectUsed(colors.dark) };

export type ColorScheme = keyof typeof colors;

function selectUsed({ back, card, text, dim, line, bad }: (typeof colors)[ColorScheme]) {
  return { back, card, text, dim, line, bad };
}

interface AccentSettings {
  readonly pagesColor: string;
  /** Empty: a shade of the other one. */
  readonly pagesColorDark: string;
}

/** @see https://www.w3.org/TR/WCAG22/#contrast-minimum */
const minContrast = 4.5;

/** The accent of a scheme: links have this color on a card, and buttons as their background. */
export function accentColor({ pagesColor, pagesColorDark }: AccentSettings, scheme: ColorScheme): string {
  if (scheme === 'light') return pagesColor;
  return pagesColorDark || readableShade(pagesColor, 'dark');
}

/** Rejects colors in which links cannot be read. Text on buttons is black or white. */
export function findUnreadable(
  settings: AccentSettings,
  variableName: (key: keyof AccentSettings) => string,
): SettingProblem | undefined {
  for (const [key, scheme] of [
    ['pagesColor', 'light'],
    ['pagesColorDark', 'dark'],
  ] as const) {
    const color = accentColor(settings, scheme);
    const { card } = pageColors[scheme];
    const ratio = contrast(color, card);
    if (ratio >= minContrast) continue;
    return {
      variable: variableName(key),
      value: color,
      expected: `a color with a contrast of ${minContrast}:1 or more to ${card}, the background of links in the ${scheme} scheme, such as ${readableShade(color, scheme)}. This one has ${(Math.floor(ratio * 10) / 10).toFixed(1)}:1`,
    };
  }
  return undefined;
}

const shadeSteps = 20;

/** The nearest readable mixture with black, or with white in the dark scheme. */
function readableShade(color: string, scheme: ColorScheme): string {
  const { card } = pageColors[scheme];
  for (let step = 0; step < shadeSteps; step++) {
    const shade = mix(color, scheme === 'light' ? 0x00 : 0xff, step / shadeSteps);
    if (contrast(shade, card) >= minContrast) return shade;
  }
  return scheme === 'light' ? '#000000' : '#ffffff';
}

/** @param share of the other channel value, from 0 to 1 */
function mix(color: string, other: number, share: number): string {
  const channels = [1, 3, 5].map((at) => {
    const own = Number.parseInt(color.slice(at, at + 2), 16);
    return Math.round(own * (1 - share) + other * share)
      .toString(16)
      .padStart(2, '0');
  });
  return `#${channels.join('')}`;
}
