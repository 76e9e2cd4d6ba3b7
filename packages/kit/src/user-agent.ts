const browsers = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari', 'curl'] as const;
const browserNames: Readonly<Partial<Record<(typeof browsers)[number], string>>> = {
  Edg: 'Edge',
  OPR: 'Opera',
};
const systems = ['Windows', 'Android', 'iPhone', 'iPad', 'Mac OS X', 'CrOS', 'Linux'] as const;

/** Browser and system of a `User-Agent`, such as `Firefox, macOS`. Undefined for other programs. */
export function findBrowser(userAgent: string): string | undefined {
  const browser = browsers.find((name) => userAgent.includes(`${name}/`));
  if (browser === undefined) return undefined;
  const system = systems.find((name) => userAgent.includes(name));
  const name = browserNames[browser] ?? browser;
  return system === undefined ? name : `${name}, ${system.replace('Mac OS X', 'macOS')}`;
}

/** Browser and system, or the first word of another program. Undefined for an empty text. */
export function describeBrowser(userAgent: string): string | undefined {
  return findBrowser(userAgent) ?? (userAgent.split(/[/ ]/, 1)[0]?.slice(0, 40) || undefined);
}
