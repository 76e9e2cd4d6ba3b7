import { readDocuments } from '@tollgate/policies/files/documents';
import type { Finding } from '@tollgate/policies/files/finding';
import { loadPolicies } from '@tollgate/policies/files/load';
import { findObjects, type PolicyObject } from '@tollgate/policies/files/objects';
import { domainOf, hasTrial, withoutTrial } from '@tollgate/policies/files/trial';
import type { RuleNode } from '@tollgate/rules/rule-set';
import { formatYaml } from '@tollgate/yaml/documents';
import { errors } from '../../errors.ts';

/** A manifest of the candidate. */
export interface CandidateObject extends PolicyObject {
  readonly domain: string;
}

/** Limits that a person has written. */
export interface Candidate {
  readonly text: string;
  /** Empty for a file of limiter rules. */
  readonly objects: readonly CandidateObject[];
  /** The rules by domain, those on trial as if they were in force. */
  readonly domains: ReadonlyMap<string, RuleNode>;
  readonly findings: readonly Finding[];
}

/** A large file of limits; the server does nothing else while it reads one. */
const maxChars = 256 * 1024;

/** Each has a version in force that is asked for. */
const maxObjects = 20;

/** Findings name it. */
const path = 'YAML';

/** Reads limits as the services would. @throws AppError `invalid_value` */
export function readCandidate(text: string): Candidate {
  if (text.length > maxChars)
    throw errors.invalid_value({
      message: `The YAML has more than ${maxChars / 1024} KiB: enter the object that changes.`,
    });
  const source = { path, text, isNamed: true };
  const { documents } = readDocuments(source);
  const objects = findObjects(documents).map((object) => ({
    ...object,
    domain: domainOf(object.manifest),
  }));
  if (objects.length > maxObjects)
    throw errors.invalid_value({ message: `The YAML has more than ${maxObjects} objects.` });
  const loaded = loadPolicies([source]);
  const isOnTrial = objects.some(({ manifest }) => hasTrial(manifest));
  const { limits } = isOnTrial ? loadPolicies(objects.map(toPromotedSource)) : loaded;
  const { findings } = loaded;
  return { text, objects, domains: limits.domains, findings };
}

function toPromotedSource({ manifest }: CandidateObject) {
  return { path, text: formatYaml(withoutTrial(manifest)), isNamed: true };
}
