export const rate = 0.1;
