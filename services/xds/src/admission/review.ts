import type { RuleProblem } from '@tollgate/rules/problem';
import type { Preview } from '../catalog/preview.ts';
import type { ConfigObject } from '../catalog/source.ts';
import { formatProblem } from '../catalog/validation.ts';
import { parseConfigObject } from '../kube/reflector.ts';
import { accessPolicies, rateLimitConfigs } from '../kube/resources.ts';

/**
 * The part of an AdmissionReview that is evaluated.
 *
 * @see https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
 */
export interface ReviewRequest {
  /** Repeated in the response. */
  readonly uid: string;
  /** The object after the change. */
  readonly object: ConfigObject;
}

const apiVersion = 'admission.k8s.io/v1';
const kind = 'AdmissionReview';

/** Kinds of objects that are reviewed. */
const kinds: readonly unknown[] = [rateLimitConfigs.kind, accessPolicies.kind];

/** @throws Error for anything but a review of an object of ours that is created or changed. */
export function parseReview(text: string): ReviewRequest {
  const review = asRecord(JSON.parse(text), 'body');
  if (review.kind !== kind || review.apiVersion !== apiVersion)
    throw new Error(`the body must be an ${kind} of ${apiVersion}`);
  const { uid, operation, object } = asRecord(review.request, 'request');
  if (typeof uid !== 'string' || uid === '') throw new Error('request.uid is missing');
  if (operation !== 'CREATE' && operation !== 'UPDATE')
    throw new Error('request.operation must be CREATE or UPDATE');
  const manifest = asRecord(object, 'request.object');
  if (!kinds.includes(manifest.kind)) throw new Error(`request.object must be a ${kinds.join(' or ')}`);
  return { uid, object: parseConfigObject(manifest) };
}

function asRecord(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${what} must be an object`);
  // Parsed JSON: an object that is not an array has string keys and unknown values.
  return value as Readonly<Record<string, unknown>>;
}

/** Problems of a response: a client prints all of them. */
const maxProblems = 20;

/** Characters of a problem, which may repeat text of the manifest. */
const maxProblemLength = 500;

/** The API server cuts off longer warnings, and drops what exceeds 4096 characters in all. */
const maxWarningLength = 256;
const maxWarnings = 10;

/** The AdmissionReview that answers a request. */
export function toResponse(uid: string, { problems, warnings }: Preview): string {
  const isAllowed = problems.length === 0;
  const response = {
    uid,
    allowed: isAllowed,
    ...(isAllowed ? undefined : { status: toStatus(problems) }),
    ...(warnings.length === 0 ? undefined : { warnings: toWarnings(warnings) }),
  };
  return JSON.stringify({ apiVersion, kind, response });
}

/** kubectl prints the message behind "admission webhook … denied the request: ". */
function toStatus(problems: readonly RuleProblem[]) {
  const shown = problems.slice(0, maxProblems);
  const left = problems.length - shown.length;
  const lines = [
    ...shown.map((problem) => cut(formatProblem(problem), maxProblemLength)),
    ...(left > 0 ? [`and ${left} more problems`] : []),
  ];
  return {
    code: 422,
    reason: 'Invalid',
    message: lines.length === 1 ? lines[0] : ['', ...lines].join('\n  '),
  };
}

function toWarnings(warnings: readonly string[]): readonly string[] {
  const shown = warnings.slice(0, maxWarnings).map((warning) => cut(warning, maxWarningLength));
  const left = warnings.length - shown.length;
  return left > 0 ? [...shown, `and ${left} more warnings`] : shown;
}

const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length - 1)}…`;
