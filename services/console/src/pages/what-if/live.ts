import { loadPolicies } from '@tollgate/policies/files/load';
import { hasTrial, promotedName } from '@tollgate/policies/files/trial';
import type { RuleNode } from '@tollgate/rules/rule-set';
import type { Visit } from '../../http/visit.ts';
import { canReadObjects, readInForce, type StoredObject } from '../policies/stored.ts';
import type { Candidate, CandidateObject } from './candidate.ts';

/** The objects in force that the candidate would replace. */
export async function readLive(
  visit: Visit,
  { objects }: Candidate,
): Promise<ReadonlyMap<CandidateObject, StoredObject>> {
  if (!canReadObjects(visit)) return new Map();
  const found = await Promise.all(
    objects.map(async (object) => {
      const live = await readReplaced(visit, object);
      return live === undefined ? [] : [[object, live] as const];
    }),
  );
  return new Map(found.flat());
}

async function readReplaced(
  visit: Visit,
  { kind, namespace, name, manifest }: CandidateObject,
): Promise<StoredObject | undefined> {
  const isSecond = kind === 'RateLimitConfig' && hasTrial(manifest);
  const replaced = isSecond ? promotedName({ name }) : name;
  return replaced === undefined ? undefined : readInForce(visit, { kind, namespace, name: replaced });
}

/**
 * Domains of RateLimitConfigs, of which other objects may have a part, with the rules in force of
 * the objects that the candidate would replace.
 */
export function liveDomains(
  { objects }: Candidate,
  live: ReadonlyMap<CandidateObject, StoredObject>,
): ReadonlyMap<string, RuleNode | undefined> {
  const configs = objects.filter(({ kind }) => kind === 'RateLimitConfig');
  const sources = configs.flatMap((config) => {
    const text = live.get(config)?.text;
    return text === undefined ? [] : [{ path: config.name, text, isNamed: true }];
  });
  const { limits } = loadPolicies(sources);
  return new Map(configs.map(({ domain }) => [domain, limits.domains.get(domain)]));
}
