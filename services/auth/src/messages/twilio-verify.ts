import type { SmsGatewayModule } from './sms.ts';
import { type FormAnswer, postForm, twilioAnswerOf, twilioAuthorization, twilioRefusal } from './twilio.ts';

/** A verification that is none any more; one that has begun is `pending`. */
const lostStatuses = ['canceled', 'deleted', 'expired', 'failed', 'max_attempts_reached'];

/** What codes look like; nobody is asked about anything else. */
const codeForm = /^\d{4,10}$/;

/** Answers to a check that say no: there is no such verification any more (404), or its tries are used up (429, error 60202). */
const triesUsedUp = 60_202;

/**
 * Twilio Verify, by SMS and WhatsApp: it makes the codes, words the messages and checks what comes back.
 *
 * @see https://www.twilio.com/docs/verify/api
 */
export const twilioVerifyGateway: SmsGatewayModule = {
  needs: ['smsTwilioVerifyAccountSid', 'smsTwilioVerifyAuthToken', 'smsTwilioVerifyMessageServiceSid'],
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
        return { messageId: messageIdOf(await post('Verifications', { To: `+${to}`, Channel: channel })) };
      },
      async check({ to, code }) {
        if (!codeForm.test(code)) return false;
        return isApproved(await post('VerificationCheck', { To: `+${to}`, Code: code }));
      },
    };
  },
};

function messageIdOf(answer: FormAnswer): string {
  if (answer.status !== 200 && answer.status !== 201) throw twilioRefusal(answer);
  const { sid, status } = twilioAnswerOf(answer);
  if (typeof status === 'string' && lostStatuses.includes(status))
    throw new Error(`Twilio answered that the verification is ${status}`);
  return typeof sid === 'string' ? sid : '';
}

function isApproved(answer: FormAnswer): boolean {
  const { status, valid, code } = twilioAnswerOf(answer);
  if (answer.status === 404 || (answer.status === 429 && code === triesUsedUp)) return false;
  if (answer.status !== 200 && answer.status !== 201) throw twilioRefusal(answer);
  return status === 'approved' && valid === true;
}
