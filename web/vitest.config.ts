import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/**/*.test.ts"], environment: "happy-dom", setupFiles: ["test/setup.ts"], restoreMocks: true, unstubGlobals: true, testTimeout: 60_000, hookTimeout: 60_000 },
});
