import type { Entry } from '../src/match/match.ts';

/** A kind of rule file, of any size, and a request that it limits. */
export interface RuleShape {
  /** Text of a rule file with `ruleCount` limits. */
  write(ruleCount: number): string;
  /** Entries that match rule `index`. */
  request(index: number): readonly Entry[];
}

/** Domain of all shapes. */
export const domain = 'bench';

const limit = ['rate_limit:', '  unit: minute', '  requests_per_unit: 100'];

/** The shapes that rule files have in practice. */
export const ruleShapes = {
  /** One level, a value for each rule. */
  flat: {
    write: (count) => file(count, (i) => ['- key: tenant', `  value: ${tenant(i)}`, ...indented(2, limit)]),
    request: (index) => [{ key: 'tenant', value: tenant(index) }],
  },
  /** Two levels: a tenant, and any path below it. */
  nested: {
    write: (count) =>
      file(count, (i) => [
        '- key: tenant',
        `  value: ${tenant(i)}`,
        '  descriptors:',
        '    - key: path',
        ...indented(6, limit),
      ]),
    request: (index) => [
      { key: 'tenant', value: tenant(index) },
      { key: 'path', value: '/items' },
    ],
  },
  /** One level of patterns. */
  wildcard: {
    write: (count) =>
      file(count, (i) => ['- key: path', `  value: "/${tenant(i)}/*"`, ...indented(2, limit)]),
    request: (index) => [{ key: 'path', value: `/${tenant(index)}/items/1` }],
  },
} as const satisfies Record<string, RuleShape>;

/** Name of a shape. */
export type RuleShapeName = keyof typeof ruleShapes;

function tenant(index: number): string {
  return `tenant-${String(index).padStart(6, '0')}`;
}

function file(count: number, rule: (index: number) => readonly string[]): string {
  const rules = Array.from({ length: count }, (_, i) => indented(2, rule(i)).join('\n'));
  return `domain: ${domain}\ndescriptors:\n${rules.join('\n')}\n`;
}

function indented(width: number, lines: readonly string[]): string[] {
  return lines.map((line) => ' '.repeat(width) + line);
}
