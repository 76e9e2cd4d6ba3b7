import { parseDuration } from '@tollgate/kit/time';
import { type Access, compileAccess } from '@tollgate/policies/compile/access';
import { allLimits } from '@tollgate/policies/compile/limits';
import type { AccessSpec, LimitSpec, PolicySpec, RuleSpec } from '@tollgate/policies/definition/spec';
import type { LoadedPolicy } from '@tollgate/policies/files/load';
import { unitSeconds } from '@tollgate/rules/rule-set';
import { compareValues, type Effect, type Statement, type Value } from './statement.ts';

export type Describe = (part: string, name: string, value: Value, presence?: Effect | undefined) => Statement;

/** Rules and routes replace what the policy has by default. */
export function sayOf(subject: string): Describe {
  return (part, name, value, presence = 'unknown') => ({
    ...{ subject, part, name, value, presence },
    ...(/^(?:rule|route) /.test(part) && { insteadOf: 'default' }),
  });
}

/** Describes an AccessPolicy. */
export function describePolicy({ resource: { spec } }: LoadedPolicy, subject: string): readonly Statement[] {
  const say = sayOf(subject);
  const { defaults = {}, overrides, rules = [] } = spec;
  const limits = spec.limits ?? defaults.limits ?? [];
  const access = spec.access ?? defaults.access;
  const names = limits.filter(({ only }) => only !== true).map(({ name }) => name);
  return [
    say('', 'for', { kind: 'text', text: formatTarget(spec) }),
    ...describeAccess(toAccess(access), 'default', say),
    say('default', 'limits', { kind: 'all of', items: names }, 'stricter'),
    ...(rules.length > 1
      ? [say('', 'order of rules', { kind: 'text', text: rules.map(formatMatches).join(', ') })]
      : []),
    ...rules.flatMap((rule) => {
      const part = `rule ${formatMatches(rule)}`;
      return [
        ...describeAccess(toAccess(rule.access ?? access), part, say),
        say(part, 'limits', { kind: 'all of', items: rule.limits ?? names }, 'stricter'),
      ];
    }),
    ...(overrides?.access ? describeAccess(toAccess(overrides.access), 'overrides', say) : []),
    ...allLimits(spec).flatMap(({ limit }) => describeLimit(limit, say)),
  ];
}

function formatTarget({ hosts, targetRefs = [] }: PolicySpec): string {
  if (hosts !== undefined) return hosts.toSorted().join(', ');
  return targetRefs
    .map(({ kind, name, sectionName }) => `${kind} ${name}${sectionName ? `/${sectionName}` : ''}`)
    .join(', ');
}

function formatMatches({ matches }: RuleSpec): string {
  const texts = matches.map(({ path, methods = [], headers = [], queryParams = [] }) => {
    const type = path?.type === undefined || path.type === 'PathPrefix' ? '' : `${path.type} `;
    const conditions = [
      ...headers.map(({ name, value }) => `${name}: ${value}`),
      ...queryParams.map(({ name, value }) => `?${name}=${value}`),
    ];
    return [...methods, `${type}${path?.value ?? '/'}`, ...conditions].join(' ');
  });
  return texts.join(' or ');
}

/** The policy compiles, so there is nothing to report. */
function toAccess(spec: AccessSpec | undefined): Access {
  return compileAccess(spec ?? {}, { hosts: undefined }, () => undefined);
}

const accessLevels = { Public: 0, Authenticated: 1, Denied: 2, Invalid: 3 } as const;

/** The conditions of an access; without effect, they are left out. */
export function describeAccess(access: Access, part: string, say: Describe): readonly Statement[] {
  const { type } = access;
  const level = say(part, 'access', { kind: 'level', level: accessLevels[type], text: type });
  if (access.type !== 'Authenticated') return [level];
  const { roles, scopes, plans, credentials, audiences, issuers, assurance, anonymousUsers, browser } =
    access;
  const anyOf = { roles, plans, credentials, audiences, issuers };
  return [
    level,
    ...Object.entries(anyOf).flatMap(([name, items]) =>
      items === undefined ? [] : [say(part, name, { kind: 'any of', items }, 'stricter')],
    ),
    ...(scopes === undefined ? [] : [say(part, 'scopes', { kind: 'all of', items: scopes }, 'stricter')]),
    ...(assurance === 'aal1'
      ? []
      : [
          say(
            part,
            'assurance',
            { kind: 'level', level: Number(assurance.slice(-1)), text: assurance },
            'stricter',
          ),
        ]),
    ...(anonymousUsers ? [say(part, 'anonymous users', { kind: 'text', text: 'may call' }, 'looser')] : []),
    ...(browser === undefined ? [] : [say(part, 'browser', { kind: 'text', text: browser })]),
  ];
}

const modeLevels = { Trial: 0, Shadow: 1, Enforce: 2 } as const;

function describeLimit(limit: LimitSpec, say: Describe): readonly Statement[] {
  const { name, by, plans = new Map<string, never>(), mode = 'Enforce', algorithm = 'FixedWindow' } = limit;
  const { burst, onStoreFailure, timeZone } = limit;
  const part = `limit ${name}`;
  const attributes = by.map((item) =>
    typeof item === 'string' ? item : Object.entries(item).flat().join(' '),
  );
  const texts = { 'time zone': timeZone, 'on store failure': onStoreFailure };
  return [
    say(part, 'requests', toRate(limit, limit), 'stricter'),
    ...[...plans].map(([plan, numbers]) => {
      const rate = toRate(limit, numbers);
      return say(part, `plan ${plan}`, rate, compareValues(toRate(limit, limit), rate));
    }),
    say(part, 'by', { kind: 'text', text: attributes.join(', ') }),
    say(part, 'mode', { kind: 'level', level: modeLevels[mode], text: mode }),
    say(part, 'algorithm', { kind: 'text', text: algorithm }),
    ...(burst === undefined
      ? []
      : [say(part, 'burst', { kind: 'rate', rate: { requests: burst, seconds: 1 }, text: String(burst) })]),
    ...Object.entries(texts).flatMap(([key, text]) =>
      text === undefined ? [] : [say(part, key, { kind: 'text', text })],
    ),
  ];
}

function toRate(
  { per, period }: Pick<LimitSpec, 'per' | 'period'>,
  { requests = 0, unlimited }: Pick<LimitSpec, 'requests' | 'unlimited'>,
): Value {
  if (unlimited === true)
    return { kind: 'rate', rate: { requests: Number.POSITIVE_INFINITY, seconds: 1 }, text: 'unlimited' };
  const unit = Object.entries(unitSeconds).find(([name]) => name === per?.toLowerCase());
  const seconds = unit?.[1] ?? (parseDuration(period ?? '') ?? 1_000) / 1000;
  return {
    kind: 'rate',
    rate: { requests, seconds },
    text: `${requests} per ${per?.toLowerCase() ?? period}`,
  };
}
