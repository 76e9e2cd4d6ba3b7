import { create, fromBinary, type JsonObject as ProtoJsonObject } from '@bufbuild/protobuf';
import type { Steps } from '@tollgate/kit/time';
import {
  RateLimitAlgorithm,
  RateLimitCharge,
  type RateLimitConfig,
  RateLimitConfigSchema,
  type RateLimitDescriptor,
  RateLimitDescriptorSchema,
  type RateLimitPolicy,
  RateLimitPolicySchema,
  RateLimitReplaceSchema,
  RateLimitStoreFailure,
  RateLimitUnit,
} from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { parseLease } from '../compile/check-limit.ts';
import type { DescriptorSpec, JsonObject, LimitSpec, RuleDocument } from '../definition/document.ts';
import { resourceSpelling } from '../definition/spelling.ts';
import type { Charge, StoreFailurePolicy, Unit } from '../match/rule-set.ts';
import { decodeInSteps } from './decode-in-steps.ts';

/** The numbers of the units on the wire. */
const unitNumbers: Readonly<Record<Unit, RateLimitUnit>> = {
  second: RateLimitUnit.SECOND,
  minute: RateLimitUnit.MINUTE,
  hour: RateLimitUnit.HOUR,
  day: RateLimitUnit.DAY,
  week: RateLimitUnit.WEEK,
  month: RateLimitUnit.MONTH,
  year: RateLimitUnit.YEAR,
};

const units: ReadonlyMap<string, RateLimitUnit> = new Map(Object.entries(unitNumbers));
const unitTexts: ReadonlyMap<number, string> = new Map([...units].map(([text, number]) => [number, text]));

const algorithms: ReadonlyMap<string, RateLimitAlgorithm> = new Map([
  ['fixed_window', RateLimitAlgorithm.FIXED_WINDOW],
  ['sliding_window', RateLimitAlgorithm.SLIDING_WINDOW],
  ['token_bucket', RateLimitAlgorithm.TOKEN_BUCKET],
  ['concurrency', RateLimitAlgorithm.CONCURRENCY],
]);
const algorithmTexts: ReadonlyMap<number, string> = new Map(
  [...algorithms].map(([text, number]) => [number, text]),
);

const policyNumbers: Readonly<Record<StoreFailurePolicy, RateLimitStoreFailure>> = {
  allow: RateLimitStoreFailure.ALLOW,
  deny: RateLimitStoreFailure.DENY,
  local: RateLimitStoreFailure.LOCAL,
};
const policies: ReadonlyMap<string, RateLimitStoreFailure> = new Map(Object.entries(policyNumbers));
const policyTexts: ReadonlyMap<number, string> = new Map(
  [...policies].map(([text, number]) => [number, text]),
);

const chargeNumbers: Readonly<Record<Charge, RateLimitCharge>> = {
  always: RateLimitCharge.ALWAYS,
  allowed: RateLimitCharge.ALLOWED,
};
const charges: ReadonlyMap<string, RateLimitCharge> = new Map(Object.entries(chargeNumbers));
const chargeTexts: ReadonlyMap<number, string> = new Map(
  [...charges].map(([text, number]) => [number, text]),
);

/** Label of a document whose message has neither name nor domain. */
const unnamed = '(unnamed resource)';

/**
 * The document as a `ratelimit.config.ratelimit.v3.RateLimitConfig`, named after its domain. Meant
 * for documents that compile: an unknown unit becomes UNKNOWN. Locations in the source are dropped.
 */
export function toMessage(document: Omit<RuleDocument, 'spelling'>): RateLimitConfig {
  const { domain, descriptors, trialDescriptors = [], atomic, onStoreFailure } = document;
  const { trialAtomic, trialOnStoreFailure } = document;
  return create(RateLimitConfigSchema, {
    name: domain,
    domain,
    descriptors: descriptors.map(toDescriptor),
    trialDescriptors: trialDescriptors.map(toDescriptor),
    atomic: atomic ?? false,
    onStoreFailure: toStoreFailure(onStoreFailure),
    trialAtomic: trialAtomic ?? false,
    trialOnStoreFailure: toStoreFailure(trialOnStoreFailure),
  });
}

/**
 * The document of a message, not validated; its source is the name of the resource. Its problems
 * appear in the status of a RateLimitConfig.
 */
export function fromMessage(message: RateLimitConfig): RuleDocument {
  const { name, domain, descriptors, trialDescriptors, atomic, onStoreFailure } = message;
  const { trialAtomic, trialOnStoreFailure } = message;
  return {
    source: name || domain || unnamed,
    spelling: resourceSpelling,
    domain,
    descriptors: descriptors.map(fromDescriptor),
    trialDescriptors: unlessEmpty(trialDescriptors.map(fromDescriptor)),
    atomic: atomic || undefined,
    onStoreFailure: fromStoreFailure(onStoreFailure),
    trialAtomic: trialAtomic || undefined,
    trialOnStoreFailure: fromStoreFailure(trialOnStoreFailure),
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
  return { ...fromMessage(message), descriptors, trialDescriptors: unlessEmpty(trialDescriptors) };
}

const unlessEmpty = (list: DescriptorSpec[]) => (list.length === 0 ? undefined : list);

function toDescriptor(spec: DescriptorSpec): RateLimitDescriptor {
  const message = create(RateLimitDescriptorSchema, {
    key: spec.key,
    value: spec.value ?? '',
    descriptors: spec.descriptors?.map(toDescriptor) ?? [],
    shadowMode: spec.shadowMode ?? false,
    detailedMetric: spec.detailedMetric ?? false,
    quotaMode: spec.quotaMode ?? false,
    valueToMetric: spec.valueToMetric ?? false,
    shareThreshold: spec.shareThreshold ?? false,
  });
  if (spec.rateLimit !== undefined) message.rateLimit = toPolicy(spec.rateLimit);
  if (spec.metadata !== undefined) message.metadata = toStruct(spec.metadata);
  return message;
}

function toPolicy(limit: LimitSpec): RateLimitPolicy {
  const {
    unit = '',
    period,
    timeZone,
    requestsPerUnit,
    unlimited,
    algorithm = '',
    burst,
    lease,
    charge = '',
    maxDebt,
    name,
    replaces,
  } = limit;
  return create(RateLimitPolicySchema, {
    unit: units.get(unit.toLowerCase()) ?? RateLimitUnit.UNKNOWN,
    period: period ?? '',
    timeZone: timeZone ?? '',
    requestsPerUnit,
    unlimited: unlimited ?? false,
    algorithm: algorithms.get(algorithm.toLowerCase()) ?? RateLimitAlgorithm.FIXED_WINDOW,
    burst: burst ?? 0,
    lease: lease === undefined ? 0 : (parseLease(lease) ?? 0),
    charge: charges.get(charge.toLowerCase()) ?? RateLimitCharge.DEFAULT_CHARGE,
    ...(maxDebt !== undefined && { maxDebt }),
    name: name ?? '',
    onStoreFailure: toStoreFailure(limit.onStoreFailure),
    replaces: replaces?.map((replaced) => create(RateLimitReplaceSchema, { name: replaced })) ?? [],
  });
}

// Same type except for `readonly` lists; the library does not modify its input.
const toStruct = (metadata: JsonObject): ProtoJsonObject => metadata as ProtoJsonObject;

function fromDescriptor(message: RateLimitDescriptor): DescriptorSpec {
  const { key, value, rateLimit, descriptors, metadata } = message;
  const { shadowMode, quotaMode, detailedMetric, valueToMetric, shareThreshold } = message;
  return {
    key,
    value: value === '' ? undefined : value,
    rateLimit: rateLimit === undefined ? undefined : fromPolicy(rateLimit),
    descriptors: descriptors.length === 0 ? undefined : descriptors.map(fromDescriptor),
    shadowMode,
    quotaMode,
    detailedMetric,
    valueToMetric,
    shareThreshold,
    metadata,
  };
}

function fromPolicy(policy: RateLimitPolicy): LimitSpec {
  const { unit, period, timeZone, requestsPerUnit, unlimited, algorithm, burst, lease, name, replaces } =
    policy;
  return {
    unit: fromUnit(unit),
    period: period === '' ? undefined : period,
    timeZone: timeZone === '' ? undefined : timeZone,
    requestsPerUnit,
    unlimited,
    algorithm: fromAlgorithm(algorithm),
    burst: burst === 0 ? undefined : burst,
    lease: lease === 0 ? undefined : `${lease}%`,
    charge: fromCharge(policy.charge),
    maxDebt: policy.maxDebt,
    name: name === '' ? undefined : name,
    onStoreFailure: fromStoreFailure(policy.onStoreFailure),
    replaces: replaces.length === 0 ? undefined : replaces.map((replaced) => replaced.name),
  };
}

function toStoreFailure(policy: string | undefined): RateLimitStoreFailure {
  return policies.get(policy?.toLowerCase() ?? '') ?? RateLimitStoreFailure.FAIL_CALL;
}

/** An unknown number stays visible in the problem that compiling reports. */
function fromStoreFailure(policy: RateLimitStoreFailure): string | undefined {
  if (policy === RateLimitStoreFailure.FAIL_CALL) return undefined;
  return policyTexts.get(policy) ?? String(policy);
}

/** An unknown number stays visible in the problem that compiling reports. */
function fromCharge(charge: RateLimitCharge): string | undefined {
  if (charge === RateLimitCharge.DEFAULT_CHARGE) return undefined;
  return chargeTexts.get(charge) ?? String(charge);
}

/** An unknown number stays visible in the problem that compiling reports. */
function fromAlgorithm(algorithm: RateLimitAlgorithm): string | undefined {
  if (algorithm === RateLimitAlgorithm.FIXED_WINDOW) return undefined;
  return algorithmTexts.get(algorithm) ?? String(algorithm);
}

/** An unknown number stays visible in the problem that compiling reports. */
function fromUnit(unit: RateLimitUnit): string | undefined {
  return unit === RateLimitUnit.UNKNOWN ? undefined : (unitTexts.get(unit) ?? String(unit));
}
