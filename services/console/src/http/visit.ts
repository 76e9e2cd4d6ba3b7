import { type Html, html } from '@tollgate/kit/html';
import type { FastifyRequest } from 'fastify';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';
import { isPermitted, type Permission } from '../scopes.ts';
import { assertAdministrator } from '../services/administrator.ts';
import { SessionClients } from '../services/session-clients.ts';
import { csrfField } from '../sign-in/csrf.ts';
import { freshToken, type Session } from '../sign-in/sessions.ts';
import { hiddenField } from '../ui/form.ts';
import { withQuery } from '../ui/table.ts';
import { requestUrl } from './request-url.ts';

/** The parameter that asks for one region of a page. */
export const regionParameter = 'region';

/** A request of a signed-in person. */
export class Visit {
  readonly context: Context;
  readonly session: Session;
  /** URL without the parameter of a region. */
  readonly url: URL;
  /** The region that is asked for; undefined for the whole page. */
  readonly region: string | undefined;
  /** The services, with the rights of the person. */
  readonly services: SessionClients;
  readonly nowMs: number;
  readonly #request: FastifyRequest;
  readonly #regions = new Map<string, Html>();

  private constructor(context: Context, session: Session, request: FastifyRequest) {
    const { settings, outages, sessions } = context;
    this.context = context;
    this.session = session;
    this.nowMs = context.nowMs();
    this.url = requestUrl(request, settings.externalUrl);
    this.region = this.url.searchParams.get(regionParameter) ?? undefined;
    this.url.searchParams.delete(regionParameter);
    this.#request = request;
    const token = (): Promise<string> => {
      // A download may outlast the session.
      if (sessions.find(session.id) === undefined) throw errors.session_ended();
      return freshToken(session);
    };
    this.services = new SessionClients({ settings, outages, token });
  }

  /**
   * @throws OAuthClientError when the tokens of the session cannot be refreshed; ServiceError,
   * AppError `not_administrator`
   */
  static async open(context: Context, session: Session, request: FastifyRequest): Promise<Visit> {
    const before = session.tokens.token;
    await freshToken(session);
    const visit = new Visit(context, session, request);
    // The role of the person may have changed since the last token.
    if (session.tokens.token !== before) await assertAdministrator(visit.services);
    return visit;
  }

  /** A parameter of the path. */
  param(name: string): string {
    // Parsed boundary: the router gives text for each parameter of a path.
    return (this.#request.params as Readonly<Record<string, string | undefined>>)[name] ?? '';
  }

  /** Value of a parameter of the query, trimmed; undefined when it is missing or empty. */
  query(name: string): string | undefined {
    return this.url.searchParams.get(name)?.trim() || undefined;
  }

  /** Whether the person may see a page or do something. */
  can(permission: Permission): boolean {
    return isPermitted(this.session.grantedScopes, permission);
  }

  /** Fields that every form with `method="post"` needs. */
  formFields(): Html {
    return hiddenField(csrfField, this.session.csrfToken);
  }

  /** Shows a sentence on the next page. */
  notify(text: string): void {
    this.session.notice = text;
  }

  /**
   * A part of the page that updates itself: the browser asks for the URL of the page with the name
   * of the region, and changes only what differs.
   */
  liveRegion(name: string, { everySeconds }: { readonly everySeconds: number }, content: Html): Html {
    const url = withQuery(this.url, { [regionParameter]: name });
    const region = html`<div id="region-${name}" class="stack" hx-get="${url}" hx-trigger="every ${everySeconds}s" hx-swap="outerMorph" data-every="${everySeconds}">${content}</div>`;
    this.#regions.set(name, region);
    return region;
  }

  /** Whether a region is shown: its updates leave out the work for the others. */
  shows(region: string): boolean {
    return this.region === undefined || this.region === region;
  }

  /** A region that the page has. */
  findRegion(name: string): Html | undefined {
    return this.#regions.get(name);
  }
}
