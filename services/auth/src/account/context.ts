import type { VerificationContext } from '../verification/context.ts';

export type AccountContext = VerificationContext;
