import type { SmsGatewayModule } from './sms.ts';
import { type FormResponse, postForm, readTwilioBody, twilioAuthorization, twilioError } from './twilio.ts';

/** The verification has ended; a running one is `pending`. */
const failedStatuses = ['canceled', 'deleted', 'expired', 'failed', 'max_attempts_reached'];

/** Other values are rejected without a request. */
const codePattern = /^\d{4,10}$/;

/** Error code of a 429: no attempts are left. */
const maxAttemptsReached = 60_202;

/**
 * Twilio Verify, for SMS and WhatsApp: it generates the codes and texts, and verifies the codes.
 *
 * @see https://www.twilio.com/docs/verify/api
 */
export const twilioVerifyGateway: SmsGatewayModule = {
  requiredSettings: [
    'smsTwilioVerifyAccountSid',
    'smsTwilioVerifyAuthToken',
    'smsTwilioVerifyMessageServiceSid',
  ],
  create(settings) {
    const service = encodeURIComponent(settings.smsTwilioVerifyMessageServiceSid);
    const url = `${settings.smsTwilioVerifyUrl.replace(/\/$/, '')}/v2/Context/${service}`;
    const authorization = twilioAuthorization({
      account: settings.smsTwilioVerifyAccountSid,
      token: settings.smsTwilioVerifyAuthToken,
    });
    const post = (resource: string, form: Readonly<Record<string, string>>) =>
      postForm(`${url}/${resource}`, { form, headers: { authorization } });
    return {
      async send({ to, channel }) {
        return { messageId: readMessageId(await post('Verifications', { To: `+${to}`, Channel: channel })) };
      },
      async check({ to, code }) {
        if (!codePattern.test(code)) return false;
        return isApproved(await post('VerificationCheck', { To: `+${to}`, Code: code }));
      },
    };
  },
};

function readMessageId(response: FormResponse): string {
  if (response.status !== 200 && response.status !== 201) throw twilioError(response);
  const { sid, status } = readTwilioBody(response);
  if (typeof status === 'string' && failedStatuses.includes(status))
    throw new Error(`Twilio answered that the verification is ${status}`);
  return typeof sid === 'string' ? sid : '';
}

function isApproved(response: FormResponse): boolean {
  const { status, valid, code } = readTwilioBody(response);
  if (response.status === 404 || (response.status === 429 && code === maxAttemptsReached)) return false;
  if (response.status !== 200 && response.status !== 201) throw twilioError(response);
  return status === 'approved' && valid === true;
}
