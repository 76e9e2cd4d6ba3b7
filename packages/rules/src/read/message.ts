import { create, type DescMessage, fromBinary } from '@bufbuild/protobuf';
import { decodeInSteps } from '@tollgate/kit/grpc/decode-in-steps';
import type { Steps } from '@tollgate/kit/time';
import {
  type RateLimitConfig,
  RateLimitConfigSchema,
  type RateLimitDescriptor,
  RateLimitDescriptorSchema,
  RateLimitPolicySchema,
  type RateLimitReplace,
  RateLimitReplaceSchema,
} from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { parseLease } from '../compile/check-limit.ts';
import {
  type DescriptorSpec,
  type DomainOptions,
  getField,
  type LimitSpec,
  type RuleDocument,
  setField,
} from '../definition/document.ts';
import { domainOptions, type NamedField, rows } from '../definition/fields.ts';
import { resourceSpelling } from '../definition/spelling.ts';

/** Label of a document whose message has neither name nor domain. */
const unnamed = '(unnamed resource)';

/**
 * The document as a `ratelimit.config.ratelimit.v3.RateLimitConfig`, named after its domain. Meant
 * for documents that compile: an unknown unit becomes UNKNOWN. Locations in the source are dropped.
 */
export function toMessage(document: Omit<RuleDocument, 'spelling'>): RateLimitConfig {
  const { domain, descriptors, trial } = document;
  const message = create(RateLimitConfigSchema, {
    name: domain,
    domain,
    descriptors: descriptors.map(toDescriptor),
    trialDescriptors: trial?.descriptors.map(toDescriptor) ?? [],
  });
  encode(message, document, wireFields.domain);
  if (trial !== undefined) encode(message, trial, wireFields.trial);
  return message;
}

/**
 * The document of a message, not validated; its source is the name of the resource. Its problems
 * appear in the status of a RateLimitConfig.
 */
export function fromMessage(message: RateLimitConfig): RuleDocument {
  const [inForce, onTrial] = [message.descriptors, message.trialDescriptors];
  return toDocument(message, inForce.map(fromDescriptor), onTrial.map(fromDescriptor));
}

function toDocument(
  message: RateLimitConfig,
  descriptors: readonly DescriptorSpec[],
  onTrial: readonly DescriptorSpec[],
): RuleDocument {
  const { name, domain } = message;
  const options: DomainOptions = decode({}, message, wireFields.domain);
  return {
    ...options,
    source: name || domain || unnamed,
    spelling: resourceSpelling,
    domain,
    descriptors,
    trial:
      onTrial.length === 0 ? undefined : { ...decode({}, message, wireFields.trial), descriptors: onTrial },
  };
}

const { descriptors: descriptorsField, trialDescriptors: trialDescriptorsField } =
  RateLimitConfigSchema.field;

/**
 * `fromMessage` for an encoded message, one top-level descriptor per step: the rules of a large
 * domain would otherwise be decoded without a break.
 *
 * @throws Error when the bytes are not such a message.
 */
export function* decodeMessage(bytes: Uint8Array): Steps<RuleDocument> {
  const descriptors: DescriptorSpec[] = [];
  const trialDescriptors: DescriptorSpec[] = [];
  const addTo = (list: DescriptorSpec[]) => (element: Uint8Array) => {
    list.push(fromDescriptor(fromBinary(RateLimitDescriptorSchema, element)));
  };
  const elements = new Map([
    [descriptorsField.number, addTo(descriptors)],
    [trialDescriptorsField.number, addTo(trialDescriptors)],
  ]);
  const message = yield* decodeInSteps(RateLimitConfigSchema, bytes, elements);
  return toDocument(message, descriptors, trialDescriptors);
}

/** A field on the wire. */
interface WireField {
  readonly field: NamedField;
  /** Its name in messages of the library. */
  readonly property: string;
  /** Values of a choice by their numbers. */
  readonly texts: ReadonlyMap<unknown, string>;
}

/** The fields of a message that have the numbers of the rows. */
function wireFieldsOf(schema: DescMessage, fields: readonly NamedField[]): readonly WireField[] {
  const properties = new Map(schema.fields.map(({ number, localName }) => [number, localName]));
  return fields.map((field) => {
    const property = properties.get(field.wire);
    if (property === undefined)
      throw new Error(`${schema.typeName} has no field ${field.wire} (${field.name})`);
    const values = field.kind === 'choice' ? Object.entries(field.values) : [];
    return { field, property, texts: new Map(values.map(([text, { wire }]) => [wire, text])) };
  });
}

const wireFields = {
  domain: wireFieldsOf(RateLimitConfigSchema, domainOptions),
  trial: wireFieldsOf(
    RateLimitConfigSchema,
    domainOptions.map((field) => ({ ...field, wire: field.trialWire ?? field.wire })),
  ),
  descriptor: wireFieldsOf(RateLimitDescriptorSchema, rows.descriptor),
  limit: wireFieldsOf(RateLimitPolicySchema, rows.limit),
};

/** A message by the names of fields; the round trip of every field proves that it has them. */
type Untyped = Record<string, unknown>;

/** Sets the fields of a message that a spec has. */
function encode<Message extends object>(
  message: Message,
  spec: object,
  fields: readonly WireField[],
): Message {
  for (const { field, property } of fields) {
    const value = getField(spec, field);
    if (value !== undefined) (message as Untyped)[property] = toWire(field, value);
  }
  return message;
}

/** Sets the fields of a spec that a message has. */
function decode<Spec extends object>(spec: Spec, message: object, fields: readonly WireField[]): Spec {
  for (const wireField of fields)
    setField(spec, wireField.field, fromWire(wireField, (message as Untyped)[wireField.property]));
  return spec;
}

const toDescriptor = (spec: DescriptorSpec): RateLimitDescriptor =>
  encode(create(RateLimitDescriptorSchema), spec, wireFields.descriptor);

const fromDescriptor = (message: RateLimitDescriptor): DescriptorSpec =>
  decode<DescriptorSpec>({ key: '' }, message, wireFields.descriptor);

function toWire(field: NamedField, value: unknown): unknown {
  switch (field.kind) {
    case 'percent':
      return parseLease(String(value)) ?? 0;
    case 'choice':
      return field.values[String(value).toLowerCase()]?.wire ?? 0;
    case 'names':
      return (value as readonly string[]).map((name) => create(RateLimitReplaceSchema, { name }));
    case 'limit':
      return encode(create(RateLimitPolicySchema), value as LimitSpec, wireFields.limit);
    case 'descriptors':
      return (value as readonly DescriptorSpec[]).map(toDescriptor);
    default:
      return value;
  }
}

/** Undefined for what means the same as an absent field. */
function fromWire({ field, texts }: WireField, value: unknown): unknown {
  switch (field.kind) {
    case 'choice':
      // An unknown number stays visible in the problem that compiling reports.
      return value === 0 ? undefined : (texts.get(value) ?? String(value));
    case 'percent':
      return value === 0 ? undefined : `${String(value)}%`;
    case 'names': {
      const names = value as readonly RateLimitReplace[];
      return names.length === 0 ? undefined : names.map(({ name }) => name);
    }
    case 'limit':
      return value && decode<LimitSpec>({ requestsPerUnit: 0 }, value, wireFields.limit);
    case 'descriptors': {
      const descriptors = value as readonly RateLimitDescriptor[];
      return descriptors.length === 0 ? undefined : descriptors.map(fromDescriptor);
    }
    case 'count':
      return value === 0 && field.optional !== true ? undefined : value;
    case 'json':
      return value;
    default:
      return value === '' || value === false ? undefined : value;
  }
}
