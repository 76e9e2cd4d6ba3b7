import { runInSlices, type Steps } from '@tollgate/kit/time';
import { policyKind } from '@tollgate/policies/definition/resource-shape';
import { resourceKind } from '@tollgate/rules/resource-shape';
import type { ConfigObject, SourceProblem } from '../catalog/source.ts';
import type { ServerState } from '../server-state.ts';
import { ManifestPositions, parsePosition } from '../sources/manifest-positions.ts';
import {
  isPolicy,
  type Manifest,
  type ManifestObject,
  parseManifests,
  readManifest,
} from '../sources/manifests.ts';
import { type AdminObject, kinds } from './kinds.ts';
import { listSpecChanges } from './spec-changes.ts';

/** Each is compared with the others of its domain, or of all hosts. */
const maxObjects = 100;

/** More than a person reads. */
const maxChanges = 500;

/** Longest time without yielding to streams. */
const sliceMs = 5;

/** Name of the text in labels of its documents. */
const source = 'manifests';

/** Evaluates manifests against what is live. Stores nothing. */
export function validateManifests(state: ServerState, text: string): Promise<object> {
  return runInSlices(validate(state, text), { sliceMs });
}

function* validate(state: ServerState, text: string): Steps<object> {
  const parsed = yield* parseManifests({ source, text });
  const positions = new ManifestPositions([{ source, text }]);
  const problems: object[] = parsed.ok ? [] : [locate(parsed.problem)];
  const objects: { readonly accepted: boolean }[] = [];
  for (const manifest of parsed.ok ? parsed.manifests : []) {
    const read = readManifest(manifest);
    if (objects.length === maxObjects) {
      problems.push({ message: `more than ${maxObjects} objects: send them in several requests` });
      break;
    }
    if (read.type === 'object') objects.push(yield* evaluate(state, { manifest, positions, ...read }));
    else if (read.type === 'problem')
      problems.push({ ...locatedAt(positions, read.problem.source, ''), message: read.problem.message });
    else
      problems.push({
        ...locatedAt(positions, manifest.label, 'kind'),
        message: `kind: ${read.kind} is not read, only ${policyKind} and ${resourceKind} are`,
      });
    yield;
  }
  const accepted = problems.length === 0 && objects.every((object) => object.accepted);
  return { replica: state.replica, accepted, problems, objects };
}

interface Candidate {
  readonly manifest: Manifest;
  readonly object: ManifestObject;
  readonly positions: ManifestPositions;
}

function* evaluate(state: ServerState, { manifest, object, positions }: Candidate) {
  const kind = isPolicy(object) ? policyKind : resourceKind;
  const { namespace, name } = object;
  const live = kinds[kind].find(state, `${namespace}/${name}`);
  const { accepted, findings } = yield* kinds[kind].evaluate(state, toCandidate(state, object, live));
  // kubectl sends another value than was evaluated.
  const ambiguous = manifest.ambiguous.map((problem) => ({ severity: 'error', ...locate(problem) }));
  const { spec } = Object(object.manifest);
  const inForce = live?.inForce === undefined ? undefined : live.valid?.spec;
  const changes = listSpecChanges(inForce, spec);
  return {
    ...{ kind, namespace, name, exists: live !== undefined },
    ...(live?.inForce !== undefined && { inForce: live.inForce }),
    accepted: accepted.status === 'True' && ambiguous.length === 0,
    conditions: [{ type: 'Accepted', ...accepted }],
    findings: [
      ...ambiguous,
      ...findings.map((finding) => ({
        ...finding,
        ...locatedAt(positions, object.label, finding.field ?? ''),
      })),
    ],
    changes: changes.slice(0, maxChanges),
    moreChanges: Math.max(0, changes.length - maxChanges),
  };
}

/** The next version of the live object, or a new one, which comes after all others. */
function toCandidate(
  { sourceName, nowMs }: ServerState,
  { id, namespace, name, manifest }: ManifestObject,
  live: AdminObject | undefined,
): ConfigObject {
  const known = live?.history()?.identity;
  if (known !== undefined) return { ...known, generation: known.generation + 1, manifest };
  return {
    ...{ namespace, name, manifest, uid: '', generation: 1 },
    ...(sourceName === 'folder' ? { id, createdMs: 0 } : { id: `${namespace}/${name}`, createdMs: nowMs() }),
    order: '\u{10ffff}',
  };
}

function locate({ source: at, message }: SourceProblem) {
  const { line, column } = parsePosition(at);
  return { ...(line !== undefined && { line }), ...(column !== undefined && { column }), message };
}

function locatedAt(positions: ManifestPositions, label: string, field: string) {
  const { line, column } = positions.find(label, field) ?? {};
  return { ...(line !== undefined && { line }), ...(column !== undefined && { column }) };
}
