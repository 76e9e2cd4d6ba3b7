import type { Steps } from '@tollgate/kit/time';
import { policyApiVersion, policyKind } from '@tollgate/policies/definition/resource-shape';
import { resourceApiVersion, resourceKind } from '@tollgate/rules/resource-shape';
import type { ConfigObject } from '../catalog/source.ts';
import type { Condition, ValidationResult } from '../catalog/validation-result.ts';
import type { ObjectHistory } from '../catalog/version-history.ts';
import type { PolicyResult } from '../policies/policy-result.ts';
import type { ServerState } from '../server-state.ts';
import { toReady } from '../status/object-status.ts';
import { type Conditions, toAccepted, toPolicyConditions } from '../status/policy-conditions.ts';
import type { KindName } from './operations.ts';

/** A problem or a warning of an object. */
interface Finding {
  readonly severity: 'error' | 'warning';
  readonly field?: string | undefined;
  readonly message: string;
}

/** An ADS resource that an object is in. */
export interface ServedIn {
  readonly clients: 'limiter' | 'auth-server';
  readonly resource: string;
  readonly limiterClass?: string | undefined;
}

/** An object of any kind. What takes time is a method, since lists show one page. */
export interface AdminObject {
  readonly kind: KindName;
  readonly apiVersion: string;
  readonly namespace: string;
  readonly name: string;
  readonly generation: number;
  /** File and number of the document; undefined if the source has no files. */
  readonly file: string | undefined;
  readonly isAccepted: boolean;
  /** Domain of a RateLimitConfig. */
  readonly domain: string | undefined;
  /** The version in force, or the last valid one. */
  readonly valid: { readonly generation: number; readonly spec: unknown } | undefined;
  readonly inForce: number | undefined;
  readonly heldBack: string | undefined;
  readonly history: () => ObjectHistory | undefined;
  readonly conditions: () => readonly (Condition & { readonly type: string; readonly target?: string })[];
  /** Members of the summary that only this kind has. */
  readonly details: () => object;
  readonly clients: () => Readonly<Record<string, { connected: number; acknowledged: number }>>;
  readonly findings: () => Steps<readonly Finding[]>;
  readonly servedIn: () => readonly ServedIn[];
}

interface Kind {
  readonly all: (state: ServerState) => readonly AdminObject[];
  readonly find: (state: ServerState, id: string) => AdminObject | undefined;
  /** The result of an object if it were created or changed now. */
  readonly evaluate: (state: ServerState, object: ConfigObject) => Steps<Evaluation>;
}

interface Evaluation {
  readonly accepted: Condition;
  readonly findings: readonly Finding[];
}

/** Kinds of objects by their names. */
export const kinds: Readonly<Record<KindName, Kind>> = {
  [resourceKind]: {
    all: (state) => {
      const { results } = state.pipeline.state();
      return [...results.values()].map((result) => toLimits(state, result));
    },
    find: (state, id) => {
      const result = state.pipeline.state().results.get(id);
      return result && toLimits(state, result);
    },
    evaluate: evaluateLimits,
  },
  [policyKind]: {
    all: (state) => {
      const results = state.policies?.state().results ?? new Map();
      return [...results.values()].map((result) => toPolicy(state, result));
    },
    find: (state, id) => {
      const results = state.policies?.state().results;
      // In a folder, objects of both kinds may have the same name.
      const result = results?.get(id) ?? results?.get(`${policyKind}/${id}`);
      return result && toPolicy(state, result);
    },
    evaluate: evaluatePolicy,
  },
};

function toLimits(state: ServerState, result: ValidationResult): AdminObject {
  const { pipeline } = state;
  const { id, label, generation, accepted, inForce, domain, limiterClass, lastValid, rules } = result;
  const [namespace = '', name = ''] = id.split('/');
  return {
    ...{ kind: resourceKind, apiVersion: resourceApiVersion, namespace, name, generation, inForce },
    file: label === id ? undefined : label,
    isAccepted: accepted.status === 'True',
    domain,
    valid: lastValid,
    heldBack: accepted.reason === 'Held' ? accepted.message : undefined,
    history: () => pipeline.versions.find(id),
    conditions: () => {
      const { programmed, matched } = pipeline.state().statuses.get(id) ?? {};
      return [
        { type: 'Accepted', ...accepted },
        ...(programmed === undefined
          ? []
          : [
              { type: 'Programmed', ...programmed },
              { type: 'Ready', ...toReady({ accepted, programmed }) },
            ]),
        ...(matched === undefined ? [] : [{ type: 'Matched', ...matched }]),
      ];
    },
    details: () => ({
      ...(domain !== undefined && { domain }),
      ...(limiterClass !== undefined && { limiterClass }),
      limits: rules,
    }),
    clients: () => {
      const { connected = 0, acknowledged = 0 } = pipeline.state().limitersOf(result) ?? {};
      return { limiters: { connected, acknowledged: inForce === undefined ? 0 : acknowledged } };
    },
    *findings() {
      const { identity, versions } = pipeline.versions.find(id) ?? {};
      if (identity === undefined) return [];
      const { manifest } = versions?.[0] ?? {};
      const { findings } = yield* evaluateLimits(state, { ...identity, manifest });
      return findings;
    },
    servedIn: () => (domain === undefined ? [] : [{ clients: 'limiter', resource: domain, limiterClass }]),
  };
}

function* evaluateLimits({ pipeline }: ServerState, object: ConfigObject): Steps<Evaluation> {
  const { accepted, problems, warnings } = yield* pipeline.preview(object);
  const errors = problems.map(({ field, path, message, hint }) => ({
    field: (field ?? path) || undefined,
    message: hint === undefined ? message : `${message} (${hint})`,
  }));
  return {
    accepted,
    findings: listFindings(
      errors,
      warnings.map((message) => ({ message })),
    ),
  };
}

function* evaluatePolicy({ policies }: ServerState, object: ConfigObject): Steps<Evaluation> {
  if (policies === undefined) {
    const message = 'this server does not read access policies: set XDS_ACCESS_POLICIES=true';
    return { accepted: { ...notObserved, message }, findings: listFindings([{ message }], []) };
  }
  const { problems, warnings } = yield* policies.evaluate(object);
  return { accepted: toAccepted(problems), findings: listFindings(problems, warnings) };
}

type Located = Omit<Finding, 'severity'>;

function listFindings(problems: readonly Located[], warnings: readonly Located[]): readonly Finding[] {
  return [
    ...problems.map(({ field, message }) => ({ severity: 'error' as const, field, message })),
    ...warnings.map(({ field, message }) => ({ severity: 'warning' as const, field, message })),
  ];
}

const notObserved: Condition = { status: 'Unknown', reason: 'Pending', message: 'not evaluated yet' };

function toPolicy({ policies, policyStatuses }: ServerState, result: PolicyResult): AdminObject {
  const { id, namespace, name, label, generation, problems, warnings, inForce, heldBack } = result;
  const rules = `policy/${namespace}/${name}`;
  const counts = () => policyStatuses?.countClients(result);
  return {
    ...{ kind: policyKind, apiVersion: policyApiVersion, namespace, name, generation },
    file: label === id ? undefined : label,
    isAccepted: problems.length === 0,
    domain: undefined,
    valid: inForce,
    inForce: inForce?.generation,
    heldBack,
    history: () => policies?.versions.find(id),
    conditions: () => {
      const observation = policyStatuses?.observationOf(id);
      return listConditions(observation ?? { result, programmed: notObserved, isSeen: false });
    },
    details: () => ({}),
    clients: () => {
      const { authServers, limiters } = counts() ?? {};
      return {
        ...(authServers && { authServers }),
        ...(limiters && {
          limiters: { connected: limiters.connected, acknowledged: limiters.acknowledged },
        }),
      };
    },
    *findings() {
      yield;
      return listFindings(problems, warnings);
    },
    servedIn: () => [
      { clients: 'auth-server', resource: namespace },
      ...(counts()?.limiters === undefined ? [] : [{ clients: 'limiter' as const, resource: rules }]),
    ],
  };
}

/** The conditions of a policy, and those at Gateways. */
function listConditions(observation: Parameters<typeof toPolicyConditions>[0]) {
  const { own, ancestors } = toPolicyConditions(observation);
  const known = new Set(own.map(([type]) => type));
  const toEntry = ([type, condition]: Conditions[number], target?: string) => ({
    type,
    ...condition,
    ...(target !== undefined && { target }),
  });
  return [
    ...own.map((one) => toEntry(one)),
    ...ancestors.flatMap(({ ref, conditions }) => {
      const { kind, namespace, name, sectionName } = ref;
      const target = [kind, namespace, name, ...(sectionName === undefined ? [] : [sectionName])].join('/');
      // Without targets, the policy is its own ancestor.
      return conditions
        .filter(([type]) => !known.has(type))
        .map((one) => (kind === policyKind ? toEntry(one) : toEntry(one, target)));
    }),
  ];
}
