import { bool, int, oneOf, pairs, text } from '@tollgate/kit/settings';
import { seconds } from './builders.ts';
import { svc } from './variable-names.ts';
import { withoutEffect } from './without-effect.ts';

const group = 'Text messages';

function credential(name: string, doc: string, secret = false) {
  return withoutEffect(text({ ...svc(name), group, default: '', secret, doc }));
}

/** Codes by SMS, and who delivers them. */
export const smsSettings = {
  smsAutoconfirm: bool({
    ...svc('SMS_AUTOCONFIRM'),
    group,
    default: false,
    doc: 'Users need not confirm their phone.',
  }),
  smsMaxFrequencyMs: withoutEffect(
    seconds({
      ...svc('SMS_MAX_FREQUENCY'),
      group,
      default: '60s',
      doc: 'Shortest time between two to a user.',
    }),
  ),
  smsOtpExpMs: withoutEffect(
    seconds({ ...svc('SMS_OTP_EXP'), group, default: '60s', doc: 'Life of a code.' }),
  ),
  smsOtpLength: withoutEffect(
    int({ ...svc('SMS_OTP_LENGTH'), group, default: 6, doc: 'Digits of a code, 6 to 10; otherwise 6.' }),
  ),
  smsTemplate: withoutEffect(
    text({ ...svc('SMS_TEMPLATE'), group, default: 'Your code is {{ .Code }}', doc: 'Text of the message.' }),
  ),
  smsTestOtp: withoutEffect(
    pairs({
      ...svc('SMS_TEST_OTP'),
      group,
      default: {},
      doc: 'Phones that get no message, with their codes.',
    }),
  ),
  smsTestOtpValidUntil: withoutEffect(
    text({
      ...svc('SMS_TEST_OTP_VALID_UNTIL'),
      group,
      default: '',
      doc: 'RFC 3339 time until which they are good.',
    }),
  ),
  smsProvider: withoutEffect(
    oneOf(['', 'twilio', 'log'], {
      ...svc('SMS_PROVIDER'),
      group,
      default: '',
      notServed: ['messagebird', 'vonage', 'textlocal'],
      doc: 'Gateway; `log` writes to the log, in development only.',
    }),
  ),
  smsTwilioAccountSid: credential('SMS_TWILIO_ACCOUNT_SID', 'Account of Twilio.'),
  smsTwilioAuthToken: credential('SMS_TWILIO_AUTH_TOKEN', 'Its token.', true),
  smsTwilioMessageServiceSid: credential('SMS_TWILIO_MESSAGE_SERVICE_SID', 'Its sender.'),
  smsTwilioContentSid: credential('SMS_TWILIO_CONTENT_SID', 'Template for WhatsApp.'),
  smsTwilioVerifyAccountSid: credential('SMS_TWILIO_VERIFY_ACCOUNT_SID', 'Account of Twilio Verify.'),
  smsTwilioVerifyAuthToken: credential('SMS_TWILIO_VERIFY_AUTH_TOKEN', 'Its token.', true),
  smsTwilioVerifyMessageServiceSid: credential('SMS_TWILIO_VERIFY_MESSAGE_SERVICE_SID', 'Its service.'),
  smsMessagebirdAccessKey: credential('SMS_MESSAGEBIRD_ACCESS_KEY', 'Key of MessageBird.', true),
  smsMessagebirdOriginator: credential('SMS_MESSAGEBIRD_ORIGINATOR', 'Its sender.'),
  smsVonageApiKey: credential('SMS_VONAGE_API_KEY', 'Key of Vonage.', true),
  smsVonageApiSecret: credential('SMS_VONAGE_API_SECRET', 'Its secret.', true),
  smsVonageFrom: credential('SMS_VONAGE_FROM', 'Its sender.'),
  smsTextlocalApiKey: credential('SMS_TEXTLOCAL_API_KEY', 'Key of Textlocal.', true),
  smsTextlocalSender: credential('SMS_TEXTLOCAL_SENDER', 'Its sender.'),
};
