import { createHash } from 'node:crypto';
import { html } from '@tollgate/kit/html';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { sendPage } from '../http/html-page.ts';
import { parseAcceptLanguage } from '../i18n/languages.ts';
import { chooseTexts } from '../i18n/texts/texts.ts';
import { issuerUrl } from '../keys/jwt.ts';

/**
 * How the browser carries the response.
 *
 * @see https://openid.net/specs/oauth-v2-form-post-response-mode-1_0.html
 */
export const responseModes = ['query', 'form_post'] as const;

/** Where and how a client gets the response. */
interface Target {
  readonly redirect_uri: string;
  readonly state: string | null;
  /** Null for `query`. */
  readonly response_mode: string | null;
}

/** The response to an authorization request: a code, or an error. @see RFC 6749 §4.1.2 */
export interface AuthorizationResponse {
  readonly target: Target;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Sends the browser to the client with the response. */
export function sendAuthorizationResponse(
  response: AuthorizationResponse,
  settings: Settings,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
): FastifyReply {
  if (response.target.response_mode === 'form_post') return sendForm(response, settings, { request, reply });
  // After a form, browsers repeat the method of the request without this status.
  const status = request.method === 'POST' ? 303 : 302;
  return reply.header('cache-control', 'no-store').redirect(responseUrl(response, settings), status);
}

/** The URL with the response. The registered URI stays as it is. */
export function responseUrl(response: AuthorizationResponse, settings: Settings): string {
  const { redirect_uri: uri } = response.target;
  return `${uri}${uri.includes('?') ? '&' : '?'}${new URLSearchParams(allParameters(response, settings))}`;
}

/** `iss` lets clients of several servers detect a mix-up. @see RFC 9207 §2 */
function allParameters(
  { target: { state }, parameters }: AuthorizationResponse,
  settings: Settings,
): Readonly<Record<string, string>> {
  return { ...parameters, ...(state && { state }), iss: issuerUrl(settings) };
}

const submitScript = 'document.forms[0].submit()';
const submitScriptHash = createHash('sha256').update(submitScript).digest('base64');

/** A form that submits itself, and has a button for browsers without scripts. */
function sendForm(
  response: AuthorizationResponse,
  settings: Settings,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
): FastifyReply {
  const { language, texts } = chooseTexts(
    parseAcceptLanguage(request.headers['accept-language'] ?? ''),
    settings,
  );
  const uri = response.target.redirect_uri;
  const fields = Object.entries(allParameters(response, settings)).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  const { title, text, button } = texts.linkPage;
  return sendPage(reply, settings, {
    language,
    title,
    // The whole scheme: the client may redirect further.
    formTargets: [new URL(uri).protocol],
    scriptHashes: [submitScriptHash],
    content: html`<p>${text}</p>
<form method="post" action="${uri}">
${fields}
<button>${button}</button>
</form>
<script>${submitScript}</script>`,
  });
}
