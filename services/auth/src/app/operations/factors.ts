import { forUser, type Operations } from './operation.ts';

export const factorsOperations: Operations = {
  'POST /factors': {
    id: 'enrollFactor',
    ...forUser,
    summary: 'Enroll a second factor',
    response: 'EnrolledFactor',
    example: ['factor_type', 'friendly_name'],
  },
  'POST /factors/{factor_id}/challenge': {
    id: 'challengeFactor',
    ...forUser,
    summary: 'Create a challenge for a factor',
    response: 'Challenge',
  },
  'POST /factors/{factor_id}/verify': {
    id: 'verifyFactor',
    ...forUser,
    summary: 'Verify a factor. Returns a session with aal2',
    response: 'Session',
    example: ['challenge_id', 'code'],
  },
  'DELETE /factors/{factor_id}': {
    id: 'removeFactor',
    ...forUser,
    summary: 'Remove a factor',
    response: 'RemovedFactor',
  },
  'GET /factors/recovery-codes': {
    id: 'countRecoveryCodes',
    ...forUser,
    summary: 'Count the recovery codes',
    response: 'RecoveryCodes',
  },
  'POST /factors/recovery-codes': {
    id: 'generateRecoveryCodes',
    ...forUser,
    summary: 'Generate recovery codes',
    response: 'RecoveryCodes',
  },
  'POST /factors/recovery-codes/regenerate': {
    id: 'regenerateRecoveryCodes',
    ...forUser,
    summary: 'Replace the recovery codes',
    response: 'RecoveryCodes',
  },
  'POST /factors/recovery-codes/verify': {
    id: 'verifyRecoveryCode',
    ...forUser,
    summary: 'Spend a recovery code. Returns a session with aal2',
    response: 'Session',
  },
  'DELETE /factors/recovery-codes': {
    id: 'removeRecoveryCodes',
    ...forUser,
    summary: 'Remove the recovery codes',
    response: 'RemovedFactor',
  },
};
