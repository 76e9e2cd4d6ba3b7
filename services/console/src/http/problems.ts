import { toPublicError } from '@tollgate/kit/errors';
import { type Html, html } from '@tollgate/kit/html';
import type { FastifyReply } from 'fastify';
import type { Context } from '../context.ts';
import { type ReplicaResult, ServiceError } from '../services/session-clients.ts';
import type { Session } from '../sign-in/sessions.ts';
import { type Problem, problem } from '../ui/messages.ts';
import { time } from '../ui/text.ts';
import { sendPage } from './responses.ts';
import type { Visit } from './visit.ts';

interface Failure {
  readonly error: unknown;
  readonly session: Session | undefined;
  readonly url: URL;
}

/** Sends a page with what is wrong and what to do. */
export function sendProblem(
  context: Context,
  reply: FastifyReply,
  { error, session, url }: Failure,
): FastifyReply {
  const { status, ...described } = describeProblem(error, context.nowMs());
  if (status >= 500 && !(error instanceof ServiceError))
    context.logger.error({ err: error, path: url.pathname }, 'failed to serve a page');
  const content = html`${problem(described)}<p><a href="${url.pathname + url.search}">Load this page again</a></p>`;
  return sendPage(context, reply, { session, url, title: described.title, content, status });
}

/** A part of a page whose rest works without it: a failure of a service is shown in its place. */
export function orProblem<Part>(part: Promise<Part>, { nowMs }: Pick<Visit, 'nowMs'>): Promise<Part | Html> {
  return part.catch((error: unknown) => toProblem(error, nowMs));
}

/** The results of the replicas that answered. */
export interface Answers<T> {
  readonly values: readonly T[];
  /** A replica that did not answer, or refused, has one. */
  readonly problems: readonly Html[];
}

export function toAnswers<T>(
  results: readonly ReplicaResult<T>[],
  { nowMs }: Pick<Visit, 'nowMs'>,
): Answers<T> {
  return {
    values: results.flatMap(({ result }) => (result.ok ? [result.value] : [])),
    problems: results.flatMap(({ result }) => (result.ok ? [] : [toProblem(result.error, nowMs)])),
  };
}

/** A problem in a part of a page whose rest works. Throws errors that are not of services. */
function toProblem(error: unknown, nowMs: number): Html {
  if (!(error instanceof ServiceError)) throw error;
  return problem(describeProblem(error, nowMs));
}

function describeProblem(error: unknown, nowMs: number): Problem & { readonly status: number } {
  if (error instanceof ServiceError) return describeServiceError(error, nowMs);
  const { code, httpStatus, message } = toPublicError(error);
  return { title: titles[code] ?? 'This did not work', text: message, status: httpStatus };
}

const titles: Readonly<Record<string, string>> = {
  page_not_found: 'Page not found',
  missing_scope: 'No access',
  not_administrator: 'Not an administrator',
  form_rejected: 'Form rejected',
  not_confirmed: 'Not confirmed',
  invalid_value: 'Not accepted',
  no_limiters: 'No rate limit service',
  sign_in_failed: 'Sign-in failed',
  sign_in_unavailable: 'Auth server unavailable',
};

/** Describes a failure of a service for a page. */
export function describeServiceError(
  error: ServiceError,
  nowMs: number,
): Problem & { readonly status: number } {
  const { service, url, outage, message, status = 502 } = error;
  // The message names the setting.
  if (error.code === 'feature_disabled')
    return { title: 'This feature is off', text: `${service} says: ${message}.`, status };
  if (error.code === 'response_too_large')
    return {
      title: `${service} answered too much`,
      text: `${service} at ${url}: ${message}. Check that this is the URL of the service.`,
      status: 502,
    };
  if (outage === undefined)
    return { title: `${service} refused the request`, text: `${message} (${error.code})`, status };
  const text = html`${service} at ${url} has not answered since ${time(outage.sinceMs, nowMs)}: ${outage.reason}. Check that it runs, and that the console may reach it. The rest of the console works.`;
  return { title: `${service} does not answer`, text, command: `curl -i ${url}/`, status: 502 };
}
