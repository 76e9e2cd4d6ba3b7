import type { AppError } from '@tollgate/kit/errors';
import { html } from '@tollgate/kit/html';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RetryLaterError } from '../errors.ts';
import { reportError } from '../http/error-response.ts';
import { sendPage } from '../http/html-page.ts';
import { pagePath } from '../http/page-url.ts';
import type { PagesContext } from './context.ts';
import { describeProblem } from './problems.ts';
import { choosePageTexts } from './texts/texts.ts';

/**
 * Whether a browser will show the response: it opens a URL or submits a form. Browsers send
 * `Sec-Fetch-Mode` to https only.
 *
 * @see https://www.w3.org/TR/fetch-metadata/#sec-fetch-mode-header
 */
export function isNavigation({ headers, method }: FastifyRequest): boolean {
  const { accept = '', 'sec-fetch-mode': mode = 'navigate' } = headers;
  return mode === 'navigate' && accept.includes('text/html') && (method === 'GET' || method === 'POST');
}

/** Handles errors of requests whose response a browser shows. */
export function sendErrorPage(context: PagesContext) {
  return (thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const error = reportError(thrown, request, context.logger);
    if (error instanceof RetryLaterError) reply.header('retry-after', error.retryAfterSeconds);
    return showError(context, error, { request, reply });
  };
}

/** Shows an error that has been reported. */
export function showError(
  { settings }: PagesContext,
  error: AppError,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
): FastifyReply {
  const isFailure = error.httpStatus >= 500;
  const { language, texts } = choosePageTexts(request, settings);
  const { message } = describeProblem(error, { texts, settings });
  const back =
    settings.pagesEnabled &&
    html`<p><a href="${pagePath(settings, 'sign-in')}">${texts.backToSignIn}</a></p>`;
  return sendPage(reply, settings, {
    language,
    title: isFailure ? texts.wentWrong : texts.doesNotWork,
    status: error.httpStatus,
    // The URL of a link or a callback.
    hasSecretUrl: true,
    content: isFailure
      ? html`<p>${texts.tryLater}</p><p class="hint">${request.id}</p>`
      : html`<p>${message}</p>${back}`,
  });
}
