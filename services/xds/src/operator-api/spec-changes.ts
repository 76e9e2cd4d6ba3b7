import { isDeepStrictEqual } from 'node:util';

/** A field of a spec that differs. */
interface SpecChange {
  /** JSON path in the new version, or of what is gone in the old one. */
  readonly field: string;
  /** Absent for an added field. */
  readonly before?: unknown;
  /** Absent for a removed field. */
  readonly after?: unknown;
}

/** Fields in which two specs differ, the smallest ones. */
export function listSpecChanges(before: unknown, after: unknown, field = 'spec'): readonly SpecChange[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (before === undefined) return [{ field, after }];
  if (after === undefined) return [{ field, before }];
  if (Array.isArray(before) && Array.isArray(after)) return listItemChanges(before, after, field);
  if (!isObject(before) || !isObject(after)) return [{ field, before, after }];
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].flatMap((key) =>
    listSpecChanges(getOwn(before, key), getOwn(after, key), `${field}.${key}`),
  );
}

/** Items are compared with those of the same name, so that an insertion is one change. */
function listItemChanges(
  before: readonly unknown[],
  after: readonly unknown[],
  field: string,
): readonly SpecChange[] {
  const areNamed = hasNames(before) && hasNames(after);
  const toEntries = (items: readonly unknown[]) =>
    new Map(items.map((item, index) => [areNamed ? nameOf(item) : index, [index, item] as const]));
  const [old, next] = [toEntries(before), toEntries(after)];
  const removed = [...old].filter(([name]) => !next.has(name));
  return [
    ...removed.map(([, [index, item]]) => ({ field: `${field}[${index}]`, before: item })),
    ...[...next].flatMap(([name, [index, item]]) =>
      listSpecChanges(old.get(name)?.[1], item, `${field}[${index}]`),
    ),
  ];
}

/** Whether each item has a name of its own. */
function hasNames(items: readonly unknown[]): boolean {
  const names = new Set(items.map(nameOf));
  return names.size === items.length && !names.has(undefined);
}

/** The fields by which a limit or a descriptor is known. */
function nameOf(item: unknown): string | undefined {
  const { name, key, value } = isObject(item) ? item : {};
  return name === undefined && key === undefined ? undefined : JSON.stringify([name, key, value]);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const getOwn = (object: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined;
