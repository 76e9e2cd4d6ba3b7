import { type DescriptorSpec, fillIn } from '../definition/document.ts';
import { nameBounds } from '../definition/fields.ts';
import { matchFields, resourceFields, resourceLists, ruleFields } from '../definition/resource-shape.ts';
import {
  asMapping,
  charge,
  checkFields,
  fieldPath,
  isAbsent,
  listField,
  type Mapping,
  requiredText,
} from './resource-fields.ts';
import { type ResourceLocations, report } from './resource-problems.ts';
import { checkSharing, rateLimitField, readField } from './resource-rate-limit.ts';

/**
 * Converts the flat `limits` in the spec of an object to a tree: limits with the same first entries
 * share levels.
 */
export function readLimits(spec: Mapping, locations: ResourceLocations): readonly DescriptorSpec[] {
  const { read } = spec;
  const growth: Growth = { locations, roots: [], byPath: new Map(), fieldByName: new Map() };
  for (const [index, item] of (listField(spec, 'limits', resourceLists.limits) ?? []).entries()) {
    const field = `${fieldPath(spec, 'limits')}[${index}]`;
    if (!charge(read, field)) break;
    const limit = asMapping(read, field, item);
    if (limit !== undefined) addLimit(growth, limit);
  }
  return growth.roots;
}

/** A descriptor under construction. */
type Draft = { -readonly [Field in keyof DescriptorSpec]: DescriptorSpec[Field] } & {
  readonly at: number;
  descriptors: Draft[];
};

/** A draft and its limits. */
interface Grown {
  readonly draft: Draft;
  /** Name of the limit that created it. */
  readonly firstName: string;
  /** Name of the limit that ends here. */
  limitName: string | undefined;
}

interface Growth {
  readonly locations: ResourceLocations;
  readonly roots: Draft[];
  /** Descriptors by the keys and values from the root. */
  readonly byPath: Map<string, Grown>;
  readonly fieldByName: Map<string, string>;
}

function addLimit(growth: Growth, limit: Mapping): void {
  checkFields(limit, resourceFields.limit);
  const name = nameField(growth, limit);
  const leaf = addMatch(growth, limit, name);
  const rule = readRule(limit, name, leaf?.draft.at ?? 0);
  if (leaf === undefined) return;
  if (leaf.limitName !== undefined) {
    const message = `limits '${leaf.limitName}' and '${name}' have the same match: remove either`;
    report(limit.read, fieldPath(limit, 'match'), message);
    return;
  }
  leaf.limitName = name;
  Object.assign(leaf.draft, rule);
  const location = growth.locations[leaf.draft.at];
  if (location !== undefined) location.rule = limit.field;
}

function nameField({ fieldByName }: Growth, limit: Mapping): string {
  const name = requiredText(limit, 'name', nameBounds) ?? '';
  const first = fieldByName.get(name);
  if (first === undefined) fieldByName.set(name, limit.field);
  else if (name !== '')
    report(limit.read, fieldPath(limit, 'name'), `${first} is named '${name}' too: names must differ`);
  return name;
}

/** The part of a limit that goes to the descriptor of its last entry. */
function readRule(limit: Mapping, name: string, at: number): Partial<DescriptorSpec> {
  if (isAbsent(limit.values.rateLimit)) report(limit.read, fieldPath(limit, 'rateLimit'), 'is required');
  const rule: Partial<DescriptorSpec> = {};
  return fillIn(rule, ruleFields, (field) =>
    field.kind === 'limit' ? rateLimitField(limit, { at, name }) : readField(limit, field),
  );
}

/**
 * Adds the missing levels of a match, and returns the last one; undefined (reported) for an empty
 * match.
 */
function addMatch(growth: Growth, limit: Mapping, name: string): Grown | undefined {
  const { read } = limit;
  const field = fieldPath(limit, 'match');
  const items = listField(limit, 'match', resourceLists.match);
  if (items === undefined || items.length === 0) {
    if (items !== undefined || isAbsent(limit.values.match)) report(read, field, 'needs at least one entry');
    return undefined;
  }
  let siblings = growth.roots;
  let path = '';
  let last: Grown | undefined;
  for (const [index, item] of items.entries()) {
    const itemField = `${field}[${index}]`;
    const mapping = charge(read, itemField) ? asMapping(read, itemField, item) : undefined;
    if (mapping === undefined) return undefined;
    const entry = readEntry(mapping);
    path += JSON.stringify([entry.key, entry.value ?? '']);
    last = growth.byPath.get(path);
    if (last === undefined) {
      const draft: Draft = {
        ...entry,
        descriptors: [],
        at: growth.locations.push({ entry: itemField, rule: itemField }) - 1,
      };
      last = { draft, firstName: name, limitName: undefined };
      growth.byPath.set(path, last);
      siblings.push(draft);
    } else checkAlike(mapping, entry, { ...last, name });
    siblings = last.draft.descriptors;
  }
  return last;
}

/** The fields of an entry of a match. */
function readEntry(mapping: Mapping): DescriptorSpec {
  checkFields(mapping, resourceFields.match);
  const entry = fillIn<DescriptorSpec>({ key: '' }, matchFields, (field) => readField(mapping, field));
  checkSharing(mapping, entry);
  return entry;
}

/** An entry shared by two limits is one level of the tree, with one value of each flag. */
function checkAlike(
  mapping: Mapping,
  entry: DescriptorSpec,
  { draft, firstName, name }: { draft: Draft; firstName: string; name: string },
): void {
  for (const flag of ['valueToMetric', 'shareThreshold'] as const) {
    if ((entry[flag] ?? false) === (draft[flag] ?? false)) continue;
    const message = `differs between limits '${firstName}' and '${name}', which share this entry: set it in both`;
    report(mapping.read, fieldPath(mapping, flag), message);
  }
}
