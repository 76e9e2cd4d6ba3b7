import { bool, int, text } from '@tollgate/kit/settings';
import { svc } from './variable-names.ts';
import { withoutEffect } from './without-effect.ts';

const group = 'Passwords';

/** What a password must be like. */
export const passwordSettings = {
  passwordMinLength: int({
    ...svc('PASSWORD_MIN_LENGTH'),
    group,
    default: 6,
    min: 0,
    max: 72,
    doc: 'Fewest characters; less than 6 counts as 6.',
  }),
  passwordRequiredCharacters: text({
    ...svc('PASSWORD_REQUIRED_CHARACTERS'),
    group,
    default: '',
    doc: 'Sets of characters separated by `:` (`\\:` is the colon itself); a password has one of each.',
  }),
  passwordHibpEnabled: withoutEffect(
    bool({
      ...svc('PASSWORD_HIBP_ENABLED'),
      group,
      default: false,
      doc: 'Refuse passwords known from leaks.',
    }),
  ),
  updatePasswordRequireReauthentication: bool({
    ...svc('SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION'),
    group,
    default: false,
    doc: 'A new password needs a nonce from `/reauthenticate` when the session is older than a day.',
  }),
  updatePasswordRequireCurrentPassword: bool({
    ...svc('SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD'),
    group,
    default: false,
    doc: 'A new password needs the old one, unless there is none or the user has come by a recovery mail.',
  }),
  uniformAnswers: bool({
    ...svc('SECURITY_UNIFORM_ANSWERS'),
    group,
    default: false,
    doc: 'Answers to sign-up, /otp, /magiclink, /recover and /resend are equal for known and unknown users in every field and limit; mails leave after the answer. Users must have to confirm their contacts.',
  }),
  dbEncryptionEncrypt: withoutEffect(
    bool({
      ...svc('SECURITY_DB_ENCRYPTION_ENCRYPT'),
      group,
      default: false,
      doc: 'Encrypt password hashes.',
    }),
  ),
  dbEncryptionKeyId: withoutEffect(
    text({
      ...svc('SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY_ID'),
      group,
      default: '',
      doc: 'Key that encrypts.',
    }),
  ),
  dbEncryptionKey: withoutEffect(
    text({
      ...svc('SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY'),
      group,
      default: '',
      secret: true,
      doc: 'The key that encrypts.',
    }),
  ),
};
