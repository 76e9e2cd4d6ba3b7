import type { JsonObject } from '@tollgate/kit/json';
import type { descriptorFields, domainFields, limitFields, NamedField } from './fields.ts';
import type { Location } from './problem.ts';
import type { FieldName, Spelling } from './spelling.ts';

/** Domains of the limits of access policies begin with this. */
export const policyDomainPrefix = 'policy/';

/** Values of fields by the kind of their row. */
interface ValueByKind {
  text: string;
  percent: string;
  choice: string;
  flag: boolean;
  count: number;
  names: readonly string[];
  json: JsonObject;
  limit: LimitSpec;
  descriptors: readonly DescriptorSpec[];
}

type Part = Readonly<Record<string, Pick<NamedField, 'kind'>>>;

type Always = { readonly always: true };

/** The fields of a part, named and documented as their rows. */
type SpecOf<Fields extends Part> = {
  readonly [Name in keyof Fields as Fields[Name] extends Always
    ? Name
    : never]: ValueByKind[Fields[Name]['kind']];
} & {
  readonly [Name in keyof Fields as Fields[Name] extends Always ? never : Name]?:
    | ValueByKind[Fields[Name]['kind']]
    | undefined;
};

/** Options of a whole domain. */
export type DomainOptions = Omit<SpecOf<typeof domainFields>, 'domain' | 'descriptors'>;

/** The rules of a domain, in force or on trial. */
export interface DomainRules extends DomainOptions {
  readonly descriptors: readonly DescriptorSpec[];
}

/**
 * One domain of rules, decoded but not validated: the common input of `compileRules` from YAML
 * files, Kubernetes resources and xDS messages.
 */
export interface RuleDocument extends DomainRules, Pick<SpecOf<typeof domainFields>, 'domain'> {
  /** Label in messages: the file, or the name of the resource. */
  readonly source: string;
  /** How messages spell fields and values. */
  readonly spelling: Spelling;
  /** Rules on trial, which have no effect; undefined without any. */
  readonly trial?: DomainRules | undefined;
  /** Class of the limiters that it is for; undefined for all. Only resources have it. */
  readonly limiterClass?: string | undefined;
  /** Handle of the document for `locate`. */
  readonly at?: number;
  /**
   * Location of a spec by its `at` handle, or of one `field` of it, named as in rule files
   * (`share_threshold`). Absent for sources without locations.
   */
  readonly locate?: (at: number, field?: FieldName) => Location | undefined;
}

/** The rules on trial as a document of their own; undefined without any. */
export function getTrialDocument(document: RuleDocument): RuleDocument | undefined {
  const { source, spelling, domain, trial, limiterClass, at, locate } = document;
  const place = { ...(at !== undefined && { at }), ...(locate !== undefined && { locate }) };
  return trial && { source, spelling, domain, limiterClass, ...place, ...trial };
}

/** One entry of a `descriptors` list. Absent, false and empty mean the same. */
export interface DescriptorSpec extends SpecOf<typeof descriptorFields> {
  /** Handle for `RuleDocument.locate`. */
  readonly at?: number | undefined;
}

/** A `rate_limit` block. */
export interface LimitSpec extends SpecOf<typeof limitFields> {
  /** Handle for `RuleDocument.locate`. */
  readonly at?: number | undefined;
}

/** Sets the fields of a spec in the order of their rows. Absent fields stay so. */
export function fillIn<Spec extends object>(
  spec: Spec,
  fields: readonly NamedField[],
  read: (field: NamedField) => unknown,
): Spec {
  for (const field of fields) setField(spec, field, read(field));
  return spec;
}

/** The value of a field in a spec, which has values of the kinds of its rows. */
export const getField = (spec: object, { name }: NamedField): unknown =>
  (spec as Record<string, unknown>)[name];

/** Sets a field unless its value is undefined. */
export function setField(spec: object, { name }: NamedField, value: unknown): void {
  if (value !== undefined) (spec as Record<string, unknown>)[name] = value;
}

/**
 * Descriptors handled per step of `Steps`: less than a millisecond of work, at a negligible cost
 * per step.
 */
export const descriptorsPerStep = 64;
