const browsers = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari', 'curl'] as const;
const browserNames: Readonly<Partial<Record<(typeof browsers)[number], string>>> = {
  Edg: 'Edge',
  OPR: 'Opera',
};
const systems = ['Windows', 'Android', 'iPhone', 'iPad', 'Mac OS X', 'CrOS', 'Linux'] as const;

/**
 * Browser and system of a `User-Agent`, such as `Firefox, macOS`, or its first word. Undefined for
 * an empty one.
 */
export function describeBrowser(userAgent: string): string | undefined {
  const browser = browsers.find((name) => userAgent.includes(`${name}/`));
  const system = systems.find((name) => userAgent.includes(name));
  if (browser === undefined) return userAgent.split(/[/ ]/, 1)[0]?.slice(0, 40) || undefined;
  const name = browserNames[browser] ?? browser;
  return system === undefined ? name : `${name}, ${system.replace('Mac OS X', 'macOS')}`;
}
