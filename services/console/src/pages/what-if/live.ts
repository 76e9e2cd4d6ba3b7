import { loadPolicies } from '@tollgate/policies/files/load';
import { hasTrial, type Manifest, promotedName } from '@tollgate/policies/files/trial';
import { isMapping } from '@tollgate/rules/resource-fields';
import type { RuleNode } from '@tollgate/rules/rule-set';
import { parse } from '@tollgate/yaml/documents';
import type { Visit } from '../../http/visit.ts';
import { ServiceError } from '../../services/session-clients.ts';
import { type ObjectName, readObject, type Schemas } from '../policies/page.ts';
import type { Candidate, CandidateObject } from './candidate.ts';

/** An object in force. */
export interface LiveObject {
  readonly text: string;
  readonly manifest: Manifest;
  /** File and number of its document; undefined in Kubernetes. */
  readonly file: string | undefined;
}

/** Whether the console may ask for objects in force. */
export function canReadLive(visit: Visit): boolean {
  return visit.context.settings.xdsUrl !== '' && visit.can('policies');
}

/** The objects in force that the candidate would replace. */
export async function readLive(
  visit: Visit,
  { objects }: Candidate,
): Promise<ReadonlyMap<CandidateObject, LiveObject>> {
  if (!canReadLive(visit)) return new Map();
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
): Promise<LiveObject | undefined> {
  const isSecond = kind === 'RateLimitConfig' && hasTrial(manifest);
  const replaced = isSecond ? promotedName({ name }) : name;
  return replaced === undefined ? undefined : readInForce(visit, { kind, namespace, name: replaced });
}

/** The version in force of an object; undefined without one. @throws ServiceError */
export async function readInForce(visit: Visit, path: ObjectName): Promise<LiveObject | undefined> {
  let detail: Schemas['ObjectDetail'];
  try {
    detail = await readObject(visit, path);
  } catch (error) {
    if (error instanceof ServiceError && error.status === 404) return undefined;
    throw error;
  }
  const { inForce: generation, file } = detail;
  if (generation === undefined) return undefined;
  const text =
    generation === detail.generation ? detail.manifest : await readVersion(visit, { ...path, generation });
  const manifest = parseManifest(text);
  return manifest && { text, manifest, file };
}

async function readVersion(
  visit: Visit,
  path: ObjectName & { readonly generation: number },
): Promise<string> {
  const { manifest } = await visit.services.xds((client) =>
    client.GET('/v1/objects/{kind}/{namespace}/{name}/versions/{generation}', { params: { path } }),
  );
  return manifest;
}

function parseManifest(text: string): Manifest | undefined {
  const parsed = parse({ text, linesBefore: 0 });
  const value = parsed.ok ? parsed.documents[0]?.value : undefined;
  return isMapping(value) ? value : undefined;
}

/**
 * Domains of RateLimitConfigs, of which other objects may have a part, with the rules in force of
 * the objects that the candidate would replace.
 */
export function liveDomains(
  { objects }: Candidate,
  live: ReadonlyMap<CandidateObject, LiveObject>,
): ReadonlyMap<string, RuleNode | undefined> {
  const configs = objects.filter(({ kind }) => kind === 'RateLimitConfig');
  const sources = configs.flatMap((config) => {
    const text = live.get(config)?.text;
    return text === undefined ? [] : [{ path: config.name, text, isNamed: true }];
  });
  const { limits } = loadPolicies(sources);
  return new Map(configs.map(({ domain }) => [domain, limits.domains.get(domain)]));
}
