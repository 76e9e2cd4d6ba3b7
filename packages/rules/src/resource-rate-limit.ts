import {
  maxRequestsPerUnit,
  resourceFields,
  resourceLists,
  resourceTexts,
  resourceUnits,
} from './resource-shape.ts';
import {
  asMapping,
  booleanField,
  butFound,
  checkFields,
  fieldOf,
  isAbsent,
  listField,
  type Mapping,
  mappingField,
  nameOf,
  report,
  requiredText,
  textField,
} from './resource-value.ts';
import type { LimitSpec } from './rule-document.ts';

/** What the reader of a `rateLimit` has to know of where it stands. */
export interface RateLimitPlace {
  /** Handle for `RuleDocument.locate`. */
  readonly at: number;
  /** Name of the limit where that is outside of `rateLimit`, which then has none itself. */
  readonly name?: string | undefined;
}

/** The `rateLimit` in a descriptor or a limit; undefined when absent or (reported) no mapping. */
export function rateLimitField(mapping: Mapping, { at, name }: RateLimitPlace): LimitSpec | undefined {
  const limit = mappingField(mapping, 'rateLimit');
  if (limit === undefined) return undefined;
  checkFields(limit, name === undefined ? resourceFields.rateLimit : resourceFields.limitRateLimit);
  const unlimited = booleanField(limit, 'unlimited');
  checkWhole(limit, unlimited);
  return {
    unit: unitField(limit),
    requestsPerUnit: countField(limit),
    unlimited,
    name: name ?? textField(limit, 'name', resourceTexts.name),
    replaces: replacesField(limit),
    at,
  };
}

/** A rateLimit is either unlimited or has both of its numbers. */
function checkWhole(limit: Mapping, unlimited: boolean | undefined): void {
  const { read, values } = limit;
  for (const name of ['unit', 'requestsPerUnit']) {
    const isThere = !isAbsent(values[name]);
    if (unlimited === true && isThere)
      report(read, fieldOf(limit, name), 'cannot be combined with unlimited: true; remove either');
    if (unlimited !== true && !isThere)
      report(read, fieldOf(limit, name), 'is required', 'or unlimited: true instead of a limit');
  }
}

function unitField(limit: Mapping): string | undefined {
  const value = limit.values.unit;
  if (isAbsent(value)) return undefined;
  const unit = resourceUnits.find((known) => known === value);
  if (unit === undefined)
    report(
      limit.read,
      fieldOf(limit, 'unit'),
      `must be one of ${resourceUnits.join(', ')}, not ${nameOf(value)}`,
    );
  return unit;
}

function countField(limit: Mapping): number {
  const value = limit.values.requestsPerUnit;
  if (isAbsent(value)) return 0;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxRequestsPerUnit)
    return value;
  const expected = `must be a whole number from 0 to ${maxRequestsPerUnit}`;
  report(limit.read, fieldOf(limit, 'requestsPerUnit'), `${expected}, ${butFound(value, /^[0-9]+$/)}`);
  return 0;
}

function replacesField(limit: Mapping): readonly string[] | undefined {
  const list = listField(limit, 'replaces', resourceLists.replaces);
  if (list === undefined) return undefined;
  const names = new Set<string>();
  for (const [index, item] of list.entries()) {
    const name = readReplaced(limit, `${fieldOf(limit, 'replaces')}[${index}]`, item);
    if (name === undefined) continue;
    if (names.has(name))
      report(limit.read, `${fieldOf(limit, 'replaces')}[${index}].name`, `'${name}' is listed twice`);
    names.add(name);
  }
  return names.size === 0 ? undefined : [...names];
}

function readReplaced({ read }: Mapping, field: string, item: unknown): string | undefined {
  const replaced = asMapping(read, field, item);
  if (replaced === undefined) return undefined;
  checkFields(replaced, resourceFields.replaced);
  return requiredText(replaced, 'name', resourceTexts.name);
}
