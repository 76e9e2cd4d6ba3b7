import type { Html } from '@tollgate/kit/html';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { openReturnAddress } from '../browser-sessions/return-address.ts';
import type { Settings } from '../config/settings.ts';
import { errors, RetryLaterError } from '../errors.ts';
import { type Api, bodyLimits } from '../http/api.ts';
import { reportError } from '../http/error-response.ts';
import { type Page, sendPage } from '../http/html-page.ts';
import type { ClientLimit } from '../limits/table.ts';
import { needsSecondFactor } from '../sessions/assurance.ts';
import { captchaSources, useCaptchaResponse } from './captcha.ts';
import { confirmFirst } from './confirm.ts';
import type { PagesContext } from './context.ts';
import { showError } from './error-page.ts';
import { describeProblem, type Problem } from './problems.ts';
import { Visit } from './visit.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Visit of a request for a page. */
    visit: Visit | undefined;
  }
}

/** Content of a page. */
export interface View {
  readonly title: string;
  readonly content: Html;
  /** Has sections, and is wider. */
  readonly isWide?: boolean;
  /** CSP sources of images in the content. */
  readonly imageSources?: readonly string[];
  /** CSP sources that the response to a form redirects to. */
  readonly formTargets?: readonly string[];
  /** SHA-256 digests in base64 of scripts in the content. */
  readonly scriptHashes?: readonly string[];
  /** A problem that the view itself shows. */
  readonly problem?: Problem;
}

/** Result of the last request, as the page shows it. */
export interface Outcome {
  readonly problem?: Problem | undefined;
}

export interface PageDefinition {
  /** The last segment of the path. */
  readonly name: string;
  /** Default: always. */
  readonly isEnabled?: ((settings: Settings) => boolean) | undefined;
  /**
   * Who may see it: everyone, a user who has yet to verify the second factor, or a signed-in user.
   */
  readonly access: 'everyone' | 'session' | 'user';
  /** Whether a sign-in must be recent, if the settings require it, before the page is shown. */
  readonly isSensitive?: boolean;
  /** Whether a sign-in must be recent, whatever the settings require. */
  readonly needsRecentSignIn?: boolean;
  /** A response to GET that precedes the check of the access. */
  readonly intercept?: (visit: Visit) => Promise<void>;
  /** A response to GET instead of the page. */
  readonly show?: (visit: Visit) => Promise<FastifyReply | undefined> | FastifyReply | undefined;
  /** The page, also with the problem of a form that was rejected. */
  readonly view: (visit: Visit, outcome: Outcome) => Promise<View> | View;
  /** Handles the form. Throws AppError to show the page again. */
  readonly submit?: (visit: Visit) => Promise<FastifyReply>;
  /** Limit of the form. */
  readonly limiter?: ClientLimit;
  /** Whether the form needs a solved CAPTCHA, if the settings enable it. */
  readonly hasCaptcha?: boolean;
  /** Default true. False for the target of forms on another page. */
  readonly hasPage?: boolean;
  /** The page that has the form, if it is another one. */
  readonly home?: string;
}

/** Adds the routes of a page: GET shows it, POST handles its form. */
export function addPage(api: Api, context: PagesContext, page: PageDefinition): void {
  const { name, submit, limiter, hasCaptcha = false, hasPage = true } = page;
  const url = `/pages/${name}`;
  const common = {
    schema: { hide: true },
    exposeHeadRoute: false,
    errorHandler: (thrown: unknown, request: FastifyRequest, reply: FastifyReply) =>
      showProblem(context, page, { thrown, request, reply }),
  };
  if (hasPage)
    api.get(url, common, async (request, reply) => {
      const visit = await Visit.open(context, request, reply);
      // A reply is a thenable without a value: whether there is a response, only it says.
      await page.intercept?.(visit);
      if (reply.sent) return reply;
      const first = admit(visit, page);
      if (first !== undefined) return first;
      await page.show?.(visit);
      return reply.sent ? reply : render(visit, page, {});
    });
  if (submit === undefined) return;
  const guards = {
    ...(limiter && { limiter }),
    ...(hasCaptcha && { captcha: () => true }),
  };
  const preValidation = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    request.visit = await Visit.open(context, request, reply);
    request.visit.checkForm();
    useCaptchaResponse(request);
  };
  const post = { ...common, config: guards, bodyLimit: bodyLimits.contact, preValidation };
  api.post(url, post, async (request) => {
    const { visit } = request;
    if (visit === undefined) throw errors.form_rejected();
    return admit(visit, page) ?? submit(visit);
  });
}

/** A redirect to the page that has to come first. */
function admit(
  visit: Visit,
  { access, name, home = name, isSensitive = false, needsRecentSignIn = false }: PageDefinition,
): FastifyReply | undefined {
  const { owner } = visit;
  if (access === 'everyone') return undefined;
  if (owner === undefined) return visit.redirect('sign-in');
  if (access === 'user' && needsSecondFactor(owner.user, owner.session))
    return visit.redirect('second-factor');
  if (!isSensitive && !needsRecentSignIn) return undefined;
  return confirmFirst(visit, home, { always: needsRecentSignIn });
}

async function render(
  visit: Visit,
  page: PageDefinition,
  outcome: Outcome & { readonly status?: number },
): Promise<FastifyReply> {
  const view = await page.view(visit, outcome);
  const { settings } = visit.context;
  return sendView(visit, view, {
    titlePrefix: (outcome.problem ?? view.problem) && visit.texts.errorPrefix,
    ...(outcome.status !== undefined && { status: outcome.status }),
    ...(page.hasCaptcha && settings.captchaEnabled && { widget: captchaSources(settings) }),
  });
}

/** The URL to which the browser goes after the form. Empty for another page. */
function findTarget({ destination: { redirectTo, returnTo }, context, metadata }: Visit): string {
  if (redirectTo !== '' || returnTo === '') return redirectTo;
  return openReturnAddress(returnTo, { settings: context.settings, nowMs: metadata.nowMs })?.url ?? '';
}

/** Shows a page, also as the response to a form. */
export function sendView(
  visit: Visit,
  view: View,
  more: Pick<Page, 'titlePrefix' | 'status' | 'widget'> = {},
): FastifyReply {
  const target = findTarget(visit);
  return sendPage(visit.reply, visit.context.settings, {
    language: visit.language,
    ...view,
    ...more,
    // The whole scheme: the app may redirect further, to `www` for example.
    ...(target !== '' && { formTargets: [target.slice(0, target.indexOf(':') + 1)] }),
  });
}

/** Shows the form again with what is wrong, or a page with the error. */
async function showProblem(
  context: PagesContext,
  page: PageDefinition,
  failed: { readonly thrown: unknown; readonly request: FastifyRequest; readonly reply: FastifyReply },
): Promise<FastifyReply> {
  const { request, reply } = failed;
  const error = reportError(failed.thrown, request, context.logger);
  if (error instanceof RetryLaterError) reply.header('retry-after', error.retryAfterSeconds);
  if (request.method !== 'POST' || error.httpStatus >= 500)
    return showError(context, error, { request, reply });
  try {
    // Undefined after a failure of the checks before the body is read.
    const visit = request.visit ?? (await Visit.open(context, request, reply));
    const first = admit(visit, page);
    if (first !== undefined) return first;
    return await render(visit, page, {
      problem: describeProblem(error, { texts: visit.texts, settings: context.settings }),
      status: error.httpStatus,
    });
  } catch (thrown) {
    const second = reportError(thrown, request, context.logger);
    return showError(context, second, { request, reply });
  }
}
