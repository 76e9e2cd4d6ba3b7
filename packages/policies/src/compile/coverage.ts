import type { Access } from './access.ts';
import type { PolicyRule } from './compile.ts';

/** Keys of attributes that every request has. A client can omit a header. */
const ofRequests: ReadonlySet<string> = new Set(['remote_address', 'method', 'path']);

/** Callers of one kind, which all have the same attributes. */
interface CallerGroup {
  /** Plural, for messages. */
  readonly name: string;
  /** Undefined for callers without a credential. */
  readonly credential: 'User' | 'ApiKey' | 'Client' | undefined;
  /** Keys of attributes that each of them has. */
  readonly keys: readonly string[];
  /** The attribute of a limit that counts them. */
  readonly by: string;
}

const groups: readonly CallerGroup[] = [
  { name: 'callers without a credential', credential: undefined, keys: [], by: 'Address' },
  { name: 'users', credential: 'User', keys: ['user_id', 'plan'], by: 'User' },
  { name: 'API keys of users', credential: 'ApiKey', keys: ['key_id', 'user_id', 'plan'], by: 'User' },
  { name: 'API keys without a user', credential: 'ApiKey', keys: ['key_id', 'plan'], by: 'ApiKey' },
  { name: 'machine clients', credential: 'Client', keys: ['client_id', 'plan'], by: 'Client' },
];

/** Limits of a Gateway that hold in addition to those of a rule, and callers that these allow. */
type Overriding = Pick<PolicyRule, 'access' | 'limits'>;

/**
 * Finds callers that a policy allows and none of its limits counts, because they lack an attribute.
 * Rules without limits are meant to have none.
 */
export function findUncovered(rules: readonly PolicyRule[], overrides?: Overriding): readonly string[] {
  const places = new Map<string, { readonly groups: readonly CallerGroup[]; readonly labels: string[] }>();
  for (const { label = 'the target', access, limits } of rules) {
    if (limits.length === 0) continue;
    const counting = [...limits, ...(overrides?.limits ?? [])];
    const isCovered = ({ keys }: CallerGroup) =>
      counting.some((limit) => limit.keys.every((key) => ofRequests.has(key) || keys.includes(key)));
    const isAllowed = (group: CallerGroup) =>
      mayCall(group, access) && (overrides === undefined || mayCall(group, overrides.access));
    const uncovered = groups.filter((group) => isAllowed(group) && !isCovered(group));
    const names = uncovered.map(({ name }) => name).join(', ');
    const known = places.get(names);
    if (known !== undefined) known.labels.push(label);
    else if (uncovered.length > 0) places.set(names, { groups: uncovered, labels: [label] });
  }
  return [...places].map(([names, { groups, labels }]) => {
    const by = [...new Set(groups.map((group) => group.by))].join(', and one by ');
    return `no limit counts ${names} on ${labels.join(', ')}: add a limit by ${by}, or allow fewer callers`;
  });
}

function mayCall({ credential, keys }: CallerGroup, access: Access): boolean {
  if (access.type === 'Public') return true;
  if (access.type !== 'Authenticated' || credential === undefined) return false;
  const { credentials, issuers, audiences, assurance } = access;
  if (credentials !== undefined && !credentials.includes(credential)) return false;
  // Keys have neither, and only sessions of users have a second factor.
  const isKey = keys.includes('key_id');
  if (isKey && (issuers !== undefined || audiences !== undefined)) return false;
  return assurance === 'aal1' || credential === 'User';
}
