import { type FakeTwilio, startTwilio } from '@tollgate/testkit/twilio';
import type t from 'tap';

/** An SMS gateway and the settings to use it. */
export interface TextMessages extends FakeTwilio {
  /** Variables without `SVC_`. */
  readonly variables: Readonly<Record<string, string>>;
  /** The code in the last message. Throws if there is none. */
  lastCode(): string;
}

/** Starts a gateway, which is stopped when the test ends. */
export async function textMessages(test: Pick<typeof t, 'teardown'>): Promise<TextMessages> {
  const twilio = await startTwilio();
  test.teardown(() => twilio.stop());
  return {
    ...twilio,
    variables: {
      SMS_PROVIDER: 'twilio',
      SMS_TWILIO_URL: twilio.url,
      SMS_TWILIO_ACCOUNT_SID: 'AC1',
      SMS_TWILIO_AUTH_TOKEN: 'secret',
      SMS_TWILIO_MESSAGE_SERVICE_SID: '+15005550006',
      SMS_AUTOCONFIRM: 'false',
    },
    lastCode() {
      const code = /\d{6,}/.exec(twilio.texts.at(-1)?.form.Body ?? '')?.[0];
      if (code === undefined) throw new Error('no text message with a code has arrived');
      return code;
    },
  };
}
