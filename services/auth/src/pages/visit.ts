import { createHmac, randomBytes } from 'node:crypto';
import { isAppError } from '@tollgate/kit/errors';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { parseCodeChallenge, toChallenge } from '../flows/pkce.ts';
import type { CodeChallenge } from '../flows/store.ts';
import { readCookie, setCookie } from '../http/cookies.ts';
import { pagePath, pageUrl } from '../http/page-url.ts';
import { allowedTarget } from '../http/redirects.ts';
import { type RequestMetadata, requestMetadata } from '../http/request-metadata.ts';
import { isEqualSecret } from '../keys/secrets.ts';
import type { IssuedSession } from '../sessions/issue.ts';
import { resumeSession } from '../sessions/refresh.ts';
import type { Session } from '../sessions/store.ts';
import type { User } from '../users/user.ts';
import type { PagesContext } from './context.ts';
import type { PageTexts } from './texts/en.ts';
import { choosePageTexts } from './texts/texts.ts';

/** Has the refresh token of the session. */
const sessionCookie = { name: 'session', form: /^[\w-]{12,128}$/ } as const;
/** Has a random secret, from which the tokens of forms are derived. */
const browserCookie = { name: 'browser', form: /^[\w-]{43}$/ } as const;

/** Errors of a refresh token that will not be accepted again. */
const endedCodes: readonly string[] = [
  'refresh_token_not_found',
  'refresh_token_already_used',
  'session_expired',
  'user_banned',
];

/** Name of the form field with the token. */
export const formTokenField = 'form_token';

/** Where a browser goes after the sign-in. */
interface Destination {
  /** Checked; empty for the account page. */
  readonly redirectTo: string;
  /** Challenge of a client that exchanges a code; undefined for the implicit flow. */
  readonly challenge: CodeChallenge | undefined;
  /** The request of an OAuth client that the user decides about; empty for none. */
  readonly authorizationId: string;
  /** Where a gateway has sent the browser from, sealed. Empty for none. */
  readonly returnTo: string;
  /** `login_hint` and `ui_locales` of the client. */
  readonly hints: Readonly<Record<string, string>>;
}

const hintNames = ['login_hint', 'ui_locales'] as const;

/** The signed-in user of a browser. */
export interface Owner {
  readonly user: User;
  readonly session: Session;
}

/** A signed-in user, and the refresh token that the browser keeps. */
export interface Account extends Owner {
  readonly refreshToken: string;
}

/** Values by name. */
type Parameters = Readonly<Record<string, string | undefined>>;

/** A request of a browser for a page: its cookies, its query and its form. */
export class Visit {
  readonly context: PagesContext;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly metadata: RequestMetadata;
  readonly query: Parameters;
  readonly destination: Destination;
  /** Texts in the language of the browser. */
  readonly texts: PageTexts;
  /** BCP 47 tag of the texts. */
  readonly language: string;
  readonly #browserSecret: string;
  #form: Parameters;
  #owner: Owner | undefined;
  #refreshToken = '';
  #hasSignedIn = false;

  /** @throws AppError `validation_failed` for an invalid code challenge */
  private constructor(context: PagesContext, request: FastifyRequest, reply: FastifyReply) {
    this.context = context;
    this.request = request;
    this.reply = reply;
    this.metadata = requestMetadata(request, context);
    this.query = readTexts(request.query);
    this.#form = readTexts(request.body);
    this.destination = {
      redirectTo: readTarget(this.query.redirect_to, request, context),
      challenge: parseCodeChallenge(this.query),
      authorizationId: this.query.authorization_id ?? '',
      returnTo: this.query.return_to ?? '',
      hints: Object.fromEntries(
        hintNames.flatMap((name) => (this.query[name] === undefined ? [] : [[name, this.query[name]]])),
      ),
    };
    const { settings } = context;
    const { language, texts } = choosePageTexts(request, settings);
    this.language = language;
    this.texts = texts;
    const known = readCookie(request, { ...browserCookie, settings });
    this.#browserSecret = known ?? randomBytes(32).toString('base64url');
    if (known === undefined) setCookie(reply, [browserCookie.name, this.#browserSecret], { settings });
  }

  /** Loads the session of the cookie. The cookie of a session that has ended is removed. */
  static async open(context: PagesContext, request: FastifyRequest, reply: FastifyReply): Promise<Visit> {
    const visit = new Visit(context, request, reply);
    const { settings } = context;
    const token = readCookie(request, { ...sessionCookie, settings });
    if (token === undefined) return visit;
    const account = await resumeAccount(visit, token);
    if (account === undefined) {
      visit.signOut();
      return visit;
    }
    const { user, session, refreshToken } = account;
    visit.#owner = { user, session };
    visit.#refreshToken = refreshToken;
    if (refreshToken !== token) visit.keep({ refreshToken });
    return visit;
  }

  /** Whether `signIn` was called, so that a code in the query is spent. */
  get hasSignedIn(): boolean {
    return this.#hasSignedIn;
  }

  get owner(): Owner | undefined {
    return this.#owner;
  }

  /** @throws AppError `session_not_found` */
  get refreshToken(): string {
    if (this.#refreshToken === '') throw errors.session_not_found();
    return this.#refreshToken;
  }

  /** Fields of the posted form; empty for another request. */
  get form(): Parameters {
    return this.#form;
  }

  /** Token of the forms of this browser and session. */
  get formToken(): string {
    return this.derive(`form ${this.#owner?.session.id ?? ''}`);
  }

  /** A secret of this browser for one purpose. */
  derive(purpose: string): string {
    return createHmac('sha256', this.#browserSecret).update(purpose).digest('base64url');
  }

  /** A code challenge of this browser, whose verifier is `derive(purpose)`. */
  challenge(purpose: string): CodeChallenge {
    return toChallenge(this.derive(purpose));
  }

  /**
   * Rejects forms of other sites. Their fields are dropped, so that none is shown.
   *
   * @throws AppError `form_rejected`
   */
  checkForm(): void {
    const { [formTokenField]: presented = '' } = this.#form;
    if (isSameOrigin(this.request, this.context.settings) && isEqualSecret(presented, this.formToken)) return;
    this.#form = {};
    throw errors.form_rejected();
  }

  /** Keeps a session in the cookie. */
  keep({ refreshToken }: Pick<IssuedSession, 'refreshToken'>): void {
    const { settings } = this.context;
    setCookie(this.reply, [sessionCookie.name, refreshToken], { settings });
  }

  /** Keeps a session, and continues this request with it. */
  async signIn({ user, sessionId, refreshToken }: IssuedSession): Promise<Owner> {
    const found = await this.context.store.sessions.findWithUser(user.id, sessionId);
    if (found?.session === undefined) throw errors.session_not_found();
    this.#hasSignedIn = true;
    return this.use({ user: found.user, session: found.session, refreshToken });
  }

  /** Keeps the session of another account, and continues this request with it. */
  use({ user, session, refreshToken }: Account): Owner {
    this.keep({ refreshToken });
    this.#owner = { user, session };
    this.#refreshToken = refreshToken;
    return this.#owner;
  }

  /** Removes the cookie. */
  signOut(): void {
    this.#owner = undefined;
    this.#refreshToken = '';
    setCookie(this.reply, [sessionCookie.name, ''], { settings: this.context.settings, maxAgeSeconds: 0 });
  }

  /** Path of a page with the destination of this visit. */
  path(name: string, more: Readonly<Record<string, string>> = {}): string {
    const { redirectTo, challenge, authorizationId, returnTo, hints } = this.destination;
    const query = new URLSearchParams({
      ...more,
      ...hints,
      ...(redirectTo !== '' && { redirect_to: redirectTo }),
      ...(authorizationId !== '' && { authorization_id: authorizationId }),
      ...(returnTo !== '' && { return_to: returnTo }),
      ...(challenge && { code_challenge: challenge.challenge, code_challenge_method: challenge.method }),
    });
    const path = pagePath(this.context.settings, name);
    return query.size === 0 ? path : `${path}?${query}`;
  }

  /** The page after a sign-in that does not return to an app. */
  get home(): 'consent' | 'return' | 'account' {
    const { authorizationId, returnTo } = this.destination;
    if (authorizationId !== '') return 'consent';
    return returnTo === '' ? 'account' : 'return';
  }

  /** Absolute form of `path`, for mails and providers. */
  url(name: string, more: Readonly<Record<string, string>> = {}): string {
    return new URL(this.path(name, more), this.context.settings.apiExternalUrl).href;
  }

  redirect(name: string, more: Readonly<Record<string, string>> = {}): FastifyReply {
    return this.reply.header('cache-control', 'no-store').redirect(this.path(name, more), 303);
  }
}

/** The account of a refresh token; undefined if its session has ended. */
export async function resumeAccount(
  { context, metadata }: Visit,
  refreshToken: string,
): Promise<Account | undefined> {
  try {
    return await resumeSession(context, refreshToken, metadata);
  } catch (error) {
    // After other errors, such as that of a hook, the session continues.
    if (!isAppError(error) || !endedCodes.includes(error.code)) throw error;
    return undefined;
  }
}

/** Empty without a target, and for a page of this server, which needs no tokens. */
function readTarget(target = '', request: FastifyRequest, context: PagesContext): string {
  const allowed = target === '' ? undefined : allowedTarget(target, request, context);
  return allowed === undefined || allowed.startsWith(pageUrl(context.settings, '')) ? '' : allowed;
}

/** The members that are text. */
function readTexts(members: unknown): Parameters {
  const pairs = Object.entries(typeof members === 'object' && members !== null ? members : {});
  return Object.fromEntries(pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string'));
}

/**
 * Reads `Sec-Fetch-Site`, which scripts cannot set, or `Origin` of browsers that do not send it.
 * Clients that send neither have no cookies of a user.
 *
 * @see https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header
 */
function isSameOrigin({ headers }: FastifyRequest, { apiExternalUrl }: Settings): boolean {
  const { 'sec-fetch-site': site, origin } = headers;
  if (site !== undefined) return site === 'same-origin';
  return origin === undefined || origin === new URL(apiExternalUrl).origin;
}
