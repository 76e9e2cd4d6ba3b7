import type { JsonObject } from '@tollgate/kit/json';
import { type DescriptorSpec, fillIn, type LimitSpec } from '../definition/document.ts';
import { type NamedField, nameBounds, rows } from '../definition/fields.ts';
import { resourceFields, unnamedLimitFields } from '../definition/resource-shape.ts';
import {
  asMapping,
  booleanField,
  checkFields,
  enumField,
  fieldPath,
  isAbsent,
  listField,
  type Mapping,
  mappingField,
  requiredText,
  textField,
} from './resource-fields.ts';
import { asMetadata } from './resource-metadata.ts';
import { butFound, report } from './resource-problems.ts';

/**
 * The value of a field without parts; undefined when absent or (reported) not within its bounds.
 */
export function readField(mapping: Mapping, field: NamedField): unknown {
  const { name } = field;
  switch (field.kind) {
    case 'flag':
      return booleanField(mapping, name);
    case 'count':
      return countField(mapping, field);
    case 'choice':
      return enumField(mapping, name, field.values);
    case 'names':
      return namesField(mapping, field);
    case 'json':
      return jsonField(mapping, name);
    case 'text':
      return field.always === true
        ? (requiredText(mapping, name, field.bounds) ?? '')
        : textField(mapping, name, field.bounds);
    case 'percent':
      return textField(mapping, name, field.bounds);
    default:
      return undefined;
  }
}

function jsonField(mapping: Mapping, name: string): JsonObject | undefined {
  const values = mappingField(mapping, name);
  return values && asMetadata(values);
}

/** Where a `rateLimit` is defined. */
export interface RateLimitLocation {
  /** Handle for `RuleDocument.locate`. */
  readonly at: number;
  /** Name of the limit, when it is defined outside of `rateLimit`. */
  readonly name?: string | undefined;
}

/** The `rateLimit` in a descriptor or a limit; undefined when absent or (reported) no mapping. */
export function rateLimitField(mapping: Mapping, { at, name }: RateLimitLocation): LimitSpec | undefined {
  const limit = mappingField(mapping, 'rateLimit');
  if (limit === undefined) return undefined;
  checkFields(limit, name === undefined ? resourceFields.rateLimit : resourceFields.limitRateLimit);
  checkWhole(limit);
  const spec: LimitSpec = { requestsPerUnit: 0, at, name };
  const fields = name === undefined ? rows.limit : unnamedLimitFields;
  return fillIn(spec, fields, (field) => readField(limit, field));
}

/** A rateLimit is either unlimited or has a number and one of unit and period. */
function checkWhole(limit: Mapping): void {
  const { read, values } = limit;
  const { unlimited } = values;
  for (const name of ['unit', 'period', 'requestsPerUnit']) {
    const isThere = !isAbsent(values[name]);
    if (unlimited === true && isThere)
      report(read, fieldPath(limit, name), 'cannot be combined with unlimited: true; remove either');
    if (unlimited === true || isThere || name === 'period') continue;
    if (name === 'unit' && !isAbsent(values.period)) continue;
    report(read, fieldPath(limit, name), 'is required', 'or unlimited: true instead of a limit');
  }
}

function countField(mapping: Mapping, { name, max }: NamedField & { kind: 'count' }): number | undefined {
  const value = mapping.values[name];
  if (isAbsent(value)) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) return value;
  const expected = `must be a whole number from 0 to ${max}`;
  report(mapping.read, fieldPath(mapping, name), `${expected}, ${butFound(value, /^[0-9]+$/)}`);
  return undefined;
}

function namesField(
  limit: Mapping,
  { name: field, maxItems }: NamedField & { kind: 'names' },
): readonly string[] | undefined {
  const list = listField(limit, field, maxItems);
  if (list === undefined) return undefined;
  const path = fieldPath(limit, field);
  const names = new Set<string>();
  for (const [index, item] of list.entries()) {
    const name = readReplaced(limit, `${path}[${index}]`, item);
    if (name === undefined) continue;
    if (names.has(name)) report(limit.read, `${path}[${index}].name`, `'${name}' is listed twice`);
    names.add(name);
  }
  return names.size === 0 ? undefined : [...names];
}

function readReplaced({ read }: Mapping, field: string, item: unknown): string | undefined {
  const replaced = asMapping(read, field, item);
  if (replaced === undefined) return undefined;
  checkFields(replaced, resourceFields.replaced);
  return requiredText(replaced, 'name', nameBounds);
}

/** A descriptor or an entry of a match that shares its counter has a value with a wildcard. */
export function checkSharing(entry: Mapping, { shareThreshold }: DescriptorSpec): void {
  const { value } = entry.values;
  if (shareThreshold === true && !(typeof value === 'string' && value.includes('*')))
    report(entry.read, fieldPath(entry, 'shareThreshold'), 'needs a value with a wildcard (*)');
}
