import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Domain of all requests and rules of the bench. */
export const benchDomain = 'bench';

/** Tenants with a rule of their own for each user; requests are spread over them. */
export const tenantCount = 8;

/** Rules that every rule file of the bench has, whatever its size. */
const baseRuleCount = tenantCount + 2;

/** No request of a run is over its limit. */
const highLimit = 1_000_000_000;

/** The name of a tenant, in rules and in requests. */
export function tenantName(index: number): string {
  return `tenant-${String(index).padStart(6, '0')}`;
}

interface RuleOptions {
  /** requests_per_unit of the rule `generation`. */
  readonly generation?: number;
  /** Algorithm of the rules that match requests. */
  readonly algorithm?: string;
  readonly atomic?: boolean;
}

/**
 * Writes a rule file with exactly `ruleCount` limits.
 *
 * The first ten match the requests of the benchmark: one for each user, one for each user of eight
 * tenants, and one named `generation`, whose limit tells which file is in force. All others are
 * siblings on the first level, which is where every request looks first: a lookup that is not
 * constant shows.
 *
 * @param ruleCount at least `baseRuleCount`.
 */
export function writeRules(
  ruleCount: number,
  { generation = 1, algorithm = 'fixed_window', atomic = false }: RuleOptions = {},
): string {
  if (ruleCount < baseRuleCount)
    throw new Error(`a rule file of the bench has at least ${baseRuleCount} rules`);
  const lines = [`domain: ${benchDomain}`, ...(atomic ? ['atomic: true'] : []), 'descriptors:'];
  lines.push('  - key: generation', ...limitLines('    ', generation));
  lines.push('  - key: user', ...limitLines('    ', highLimit, algorithm));
  for (let i = 0; i < ruleCount - 2; i++) {
    lines.push('  - key: tenant', `    value: ${tenantName(i)}`);
    if (i < tenantCount) {
      lines.push('    descriptors:', '      - key: user', ...limitLines('        ', highLimit, algorithm));
    } else {
      lines.push(...limitLines('    ', highLimit));
    }
  }
  return `${lines.join('\n')}\n`;
}

/** Windows of an hour: none ends within a run, unless the run is unlucky. */
function limitLines(indent: string, requestsPerUnit: number, algorithm = 'fixed_window'): string[] {
  return [
    `${indent}rate_limit:`,
    `${indent}  unit: hour`,
    `${indent}  requests_per_unit: ${requestsPerUnit}`,
    ...(algorithm === 'fixed_window' ? [] : [`${indent}  algorithm: ${algorithm}`]),
  ];
}

/** Puts a rule file in place atomically, as an editor does. */
export function replaceRules(folder: string, text: string): void {
  mkdirSync(join(folder, 'config'), { recursive: true });
  writeFileSync(join(folder, 'aside.yaml'), text);
  renameSync(join(folder, 'aside.yaml'), join(folder, 'config/bench.yaml'));
}
