import { isAppError } from '@tollgate/kit/errors';
import type { FastifyRequest } from 'fastify';
import { captchaUrls } from '../config/captcha.ts';
import { errors } from '../errors.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { postForm, toObject } from '../outbound/post-form.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import type { Context } from './context.ts';

/**
 * Verifies the CAPTCHA token of a request with the provider. Administrators need none.
 *
 * @throws AppError `captcha_failed`; `unexpected_failure` if the provider does not answer: fails
 * closed.
 * @see https://docs.hcaptcha.com/#verify-the-user-response-server-side
 * @see https://developers.cloudflare.com/turnstile/get-started/server-side-validation/
 */
export async function verifyCaptcha(request: FastifyRequest, context: Context): Promise<void> {
  if (await isAdmin(request, context)) return;
  const token = findToken(request.body);
  if (token === '') throw rejected('no captcha_token found');
  const { clientAddress } = requestMetadata(request, context);
  const { success, 'error-codes': codes } = await callProvider(token, clientAddress, context);
  if (success === true) return;
  throw rejected(Array.isArray(codes) ? codes.map(String).join(', ') : '');
}

async function isAdmin(request: FastifyRequest, context: Context): Promise<boolean> {
  if (request.headers.authorization === undefined) return false;
  try {
    await authenticateAdmin(request, context);
    return true;
  } catch (error) {
    if (isAppError(error)) return false;
    throw error;
  }
}

/** Clients of GoTrue send it as `gotrue_meta_security`; the other names are ours. */
function findToken(body: unknown): string {
  const members = toObject(body);
  const tokens = [members.gotrue_meta_security, members.svc_meta_security, members].map(
    (parent) => toObject(parent).captcha_token,
  );
  const found = tokens.find((token) => typeof token === 'string' && token.trim() !== '');
  return typeof found === 'string' ? found.trim() : '';
}

function rejected(reason: string) {
  return errors.captcha_failed({ message: `${errors.captcha_failed.definition.message} (${reason})` });
}

async function callProvider(token: string, clientAddress: string, { settings }: Context) {
  const url = settings.captchaUrl === '' ? captchaUrls.get(settings.captchaProvider) : settings.captchaUrl;
  const form = { secret: settings.captchaSecret, response: token, remoteip: clientAddress };
  try {
    if (url === undefined) throw new Error('unknown CAPTCHA provider');
    const { status, body } = await postForm(url, { form, timeoutMs: settings.captchaTimeoutMs });
    const answer = toObject(body);
    // Rejections have status 200 or 400. Another status is not that of the provider's API.
    const isAnswer =
      typeof answer.success === 'boolean' && (status < 300 || (status === 400 && !answer.success));
    if (!isAnswer) throw new Error(`the CAPTCHA provider answered ${status}`);
    return answer;
  } catch (error) {
    throw errors.unexpected_failure({ message: 'captcha verification process failed', cause: error });
  }
}
